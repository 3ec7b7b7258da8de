// Package index has the coordinates of nnet3: an Index (n, t, x) names a row of the output of a node, a Cindex names a
// node with it. The package knows their orders, their printed form, and their encoding in Kaldi's files. It knows no
// network.
//
// All types are plain values.
package index
