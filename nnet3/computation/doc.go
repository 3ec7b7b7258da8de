// Package computation defines the form in which a compiled network is executed. A [Computation] is
// a list of commands over matrices and rectangles of them; a [Request] is what it answers. The
// package prints, reads and writes both, and checks whether computations are sound ([Check]). It
// neither makes computations (see nnet3/compile and nnet3/lower) nor runs them (see exec).
//
// The nouns are Kaldi's. A matrix is a buffer of float32s, from the command that allocates it to
// the one that frees it. A sub-matrix, or view, is a rectangle of a matrix; commands name
// sub-matrices by number. Matrix 0 and sub-matrix 0 are reserved and empty, so 0 means "no matrix".
//
// A [NetworkInfo] holds the facts about a network that checks and printing need: names, dimensions
// and properties of components, and nodes. With it a computation can be studied without its
// network.
//
// A Computation and a Request that no longer change are safe for concurrent use, as is a
// NetworkInfo. A [Printer] serves one goroutine.
package computation
