// Package pipeline takes a network and a request all the way to numbers: Load reads a model, Build
// compiles a request and optimizes the computation, Run executes a computation. For single steps, use
// nnet3/compile, passes and exec directly: this package only joins them.
//
// For measurements and demonstrations, RandomValues makes random inputs, and Calibrate gives a
// network with random parameters the statistics that training would have left.
//
// A Plan does not change after Build, and is safe for concurrent use.
package pipeline
