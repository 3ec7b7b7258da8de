// Package computation has the form in which a compiled network is executed: a Computation, a list of commands over
// matrices and rectangles of them, and the Request that it answers. It prints, reads and writes computations, finds out
// what they do (Analyzer) and whether they are sound (Check). It neither makes computations (see nnet3/compile and
// nnet3/lower) nor runs them (see exec).
//
// The nouns are Kaldi's. A matrix is a buffer of float32, from the command that allocates it to the one that frees it. A
// sub-matrix is a rectangle of a matrix; commands name sub-matrices by number. Matrix 0 and sub-matrix 0 are reserved and
// empty, so 0 stands for "no matrix". A variable is a piece of a matrix that no sub-matrix cuts through; two sub-matrices
// overlap exactly where they share a variable.
//
// What has to be known of the network (names, dimensions and properties of components, nodes) comes in a NetworkInfo, so
// that computations can be studied without their network.
//
// A Computation that has been handed out is not changed any more, and then safe for concurrent use, as is an Analyzer.
package computation
