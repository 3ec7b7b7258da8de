// Package tensortest makes tensor graphs for tests and benchmarks: random expressions with arguments, and the graphs by which the speed of
// Theano's and PyTensor's optimizers is known.
//
//	g := tensortest.NewGenerator(seed)
//	g.Grow(20)                    // twenty ops, or a few more
//	out := g.Outputs(2)           // two of them as outputs
//	inputs, args := g.Inputs()    // values with which they can be computed
package tensortest
