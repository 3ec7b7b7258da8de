// Package descriptor has nnet3's little language that says where the input of a node comes from, as in
//
//	Append(Offset(input, -1), input, Sum(Scale(0.66, tdnn1), IfDefined(Offset(tdnn2, -3))))
//
// Its ten functions are Append, Sum, Failover, IfDefined, Const, Scale, Offset, Switch, Round and ReplaceIndex; the
// rest are names of nodes and numbers.
//
// Parse brings a descriptor into normal form: columns that stand side by side (Parts), each a Sum over terms, each a
// Forward, which leads from an index of the output to one Cindex of a node and its scale. Scales multiply down to the
// nodes, offsets of offsets add up, and Append comes out to the front.
//
// A compiler asks a descriptor three things: what a row might need (Dependencies), whether the row can be computed from
// what there is, and from which rows then (IsComputable), and which rows, with which scales, make up each part of it
// (Sum.Eval).
//
// Descriptors are immutable once made and safe for concurrent use.
package descriptor
