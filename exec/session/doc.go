// Package session runs ONNX models.
//
//	s := session.New(m, session.Options{})
//	f, outputs, err := s.Run(ctx, inputs)
//
// A model becomes a graph of nodes (package onnx/ir), which passes rewrite, then a graph of tensors
// (package onnx/lower), which passes rewrite again, and then an exec.Function. That is for inputs of given
// shapes, or of any sizes from 2 on, and for given values where the graph of tensors depends on them.
// [Function.Call] refuses inputs that would lead to another graph, and a [Session] makes that graph.
package session
