// Package onnxpass contains the passes on graphs of ONNX's nodes, see package onnx/ir. They drop nodes
// that do nothing, fold constants and shapes, and move scales and biases into convolutions.
//
// A rule that is an equation is text in the folder rules, in ONNX's own words, see [Vocabulary]; one
// that is an algorithm is a Go function, and says why. [Rules] lists all rules, with their groups and
// tags. Passes that look at a whole graph have functions of their own, such as [InferTypes].
package onnxpass
