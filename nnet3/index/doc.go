// Package index has the coordinates of nnet3. An [Index] (n, t, x) names a row of a node's output:
// the sequence, the time, and an extra coordinate. A [Cindex] adds the node. The package has their
// orders, their printed form and their encoding in Kaldi's files. It knows nothing of networks.
//
// Both types are plain values. All functions are safe for concurrent use.
package index
