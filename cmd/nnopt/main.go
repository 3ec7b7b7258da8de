// Command nnopt optimizes the computations of Kaldi nnet3 networks, and shows how.
//
//	nnopt VERB [flags] [arguments]
//
// "nnopt help" lists the verbs, and "nnopt help VERB" explains one. Data goes to
// standard output, messages to standard error. The exit status is 1 after a fault or
// a signal, and 2 after wrong usage.
package main

import "github.com/nnopt/nnopt/tool/standard"

func main() {
	useBLAS()
	standard.Program{}.Main()
}
