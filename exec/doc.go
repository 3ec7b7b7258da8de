// Package exec executes computations of nnet3 and graphs of tensors. It neither compiles networks
// nor knows a pass: a Function is given its optimizer.
//
// A Program is a computation of nnet3 with everything looked up: immutable, made once, safe for
// concurrent use. A Computer runs a Program for one goroutine at a time:
//
//	p, err := exec.NewProgram(c, nn)           // checks the computation
//	comp, err := p.NewComputer(exec.ComputerOptions{})
//	err = comp.AcceptInput("input", feats)
//	err = comp.Run(ctx)                        // up to the marker between forward and backward
//	y, err := comp.Output("output")            // a view of the computer's memory
//	comp.Reset()                               // ready for the next input
//
// A training computation continues with AcceptInput("output", derivative) and Run. Output("input")
// is then the derivative of the input. In a looped computation every Run is a segment, for any
// number of segments.
//
// NewProgram plans the place of each matrix in memory. The memory comes from a Workspace, and goes
// back there, so that a computer that is used again allocates nothing. A Timing tells which
// commands take how long.
//
// A Function is a compiled graph of tensors, for any number of goroutines. A Runner calls it for
// one goroutine, in memory that was planned when the graph was compiled. A Shared is a variable with
// a value that functions read and update; it is not safe for concurrent use.
//
// Package kernel has the numerics. Components call it from their own Propagate and Backprop.
package exec
