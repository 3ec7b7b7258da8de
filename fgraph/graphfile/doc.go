// Package graphfile reads and writes graphs as text:
//
//	query: +fast_run
//
//	graph {
//	    input %x : float64[?]
//	    %1 = constant {2.0} : float64[1]
//	    %2 = mul(%1, %x) : float64[?]
//	    %3, %y = split(%2) @7 : float64[?], float64[?]
//	    return %3, %y
//	}
//
// A file begins with fields, a name and a text each, for whoever uses the graph. Then every line
// is an input, a constant or an apply, in an order in which operands come first. A variable is
// called by its name, or by a number if it has none; one whose name is no identifier, or taken,
// has a number and the name in quotes: %4"a b". "@7" is the origin of an apply. Lines that begin
// with "#" are comments.
//
// A [Dialect] knows the text of ops, types and constants. What [Format] prints, [Parse] reads as the
// same graph: inputs, outputs, ops, types, constants to the bit, names, origins, and the order in
// which applies are sorted.
//
// A file may hold several graphs, such as the segments of a computation. A [Section] beside them
// holds what several ops have in common (in front of the first graph, see [Tabler]) or what a
// feature of a graph means (behind it, see [WrittenFeature]). If an op of a graph overwrites an
// input, the graph gets an fgraph.DestroyHandler, which checks that and orders the other readers.
//
// Reading takes time and memory in proportion to the text. Graphs are confined to one goroutine at
// a time, as everywhere.
package graphfile
