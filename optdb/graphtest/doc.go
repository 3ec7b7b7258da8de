// Package graphtest tests passes by files: graphs, what to do with them, and the graphs that must
// come out.
//
//	# Division undoes multiplication.
//	query: +canonicalize
//	expect: local_div_of_product
//
//	graph {
//	    input %x : float64
//	    input %y : float64
//	    %0 = mul(%x, %y) : float64
//	    %1 = true_div(%0, %y) : float64
//	    return %1
//	}
//	---
//	graph {
//	    input %x : float64
//	    input %y : float64
//	    return %x
//	}
//	===
//	(the next case)
//
// A case is a graph file (see package graphfile) with these fields, then a line of three dashes,
// and the result. A line of three equals signs, optionally followed by a name, begins the next
// case.
//
//   - query selects the optimizer from Config.Database, and passes names rewriters of Config.Passes,
//     separated by commas.
//   - expect and expect-not name rules or passes that must have made a rewrite, or must not.
//   - error is a part of the error that must come out, in place of a result.
//   - sections: yes shows the sections of the result behind its graphs, and its order of applies.
//     Otherwise the result is shown without sections, operands in the order of their use, so that it
//     does not depend on what happened on the way.
//
// [Run] runs the cases of files as tests, and with Config.Update writes the results into the files
// instead, which are then reviewed as differences. [Check] does that for a text.
package graphtest
