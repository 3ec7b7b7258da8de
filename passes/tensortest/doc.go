// Package tensortest makes tensor graphs for tests and benchmarks: random expressions with values
// for their inputs (Generator), and the graphs on which the speed of Theano's and PyTensor's
// optimizers is known (Graph). It optimizes and compares nothing itself.
//
//	g := tensortest.NewGenerator(seed)
//	g.Grow(20)                    // add twenty parts, of an op or a few
//	out := g.Outputs(2)           // choose two of them
//	inputs, args := g.Inputs()    // and values to compute them with
//
// A Generator is for one goroutine; the graphs are new with every call.
package tensortest
