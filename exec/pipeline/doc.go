// Package pipeline takes a network and a request all the way: Load reads a model, Build compiles a request and optimizes the
// computation, Run executes it as compiled or as optimized, Measure measures that. It is what a program
// that uses networks as they are needs; who wants the steps one by one goes to nnet3/compile, passes and exec.
//
// For measurements and demonstrations it also makes inputs at random (RandomValues), and gives a network with random parameters the
// statistics that training would have left (Calibrate).
//
// A Plan is not changed once it is built, and then safe for concurrent use.
package pipeline
