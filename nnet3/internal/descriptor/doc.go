// Package descriptor has the language of nnet3 that says where a node takes its input from, as in
//
//	Append(Offset(input, -1), input, Sum(Scale(0.66, tdnn1), IfDefined(Offset(tdnn2, -3))))
//
// Its ten functions are Append, Sum, Failover, IfDefined, Const, Scale, Offset, Switch, Round and
// ReplaceIndex. Other words are nodes and numbers. Nodes are just numbers here, and nothing is
// computed.
//
// [Parse] brings a descriptor into normal form. A [Descriptor] is a list of parts, whose columns
// are side by side. A part is a [Sum] of terms. A term is a [Forward], which leads from an index
// of the output to a row of a node and a scale. Append moves to the outside, scales move down to
// the nodes, and offsets of offsets add up.
//
// Three questions can be asked of a descriptor at an index: which rows it might need
// (Descriptor.Dependencies), whether the rows at hand suffice (Descriptor.IsComputable), and which
// rows add up to a part of it, with which scales (Sum.Eval).
//
// Descriptors do not change once made, and are safe for concurrent use.
package descriptor
