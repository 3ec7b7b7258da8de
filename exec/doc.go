// Package exec runs what was compiled. A Program is a computation of nnet3 with everything looked up that can be looked up
// once: immutable, made once, shared by all goroutines. A Computer runs a Program for one goroutine at a time:
//
//	p, err := exec.NewProgram(c, nn)           // checks the computation
//	comp, err := p.NewComputer(exec.ComputerOptions{})
//	err = comp.AcceptInput("input", feats)
//	err = comp.Run(ctx)                        // up to the marker between forward and backward
//	y, err := comp.Output("output")            // a view of the computer's memory
//	comp.Reset()                               // ready for the next input
//
// A training computation goes on: AcceptInput("output", derivative), Run, and Output("input") is the derivative with
// respect to the input. In a looped computation every Run is a segment, for as long as the caller likes.
//
// Where in memory each matrix lives is planned when the program is made. The memory comes from a Workspace, and goes back
// there, so that a computer that is used again allocates nothing.
//
// Numerics are kernel's; how a component computes is its own affair.
package exec
