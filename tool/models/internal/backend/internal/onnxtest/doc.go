// Package onnxtest draws random ONNX models with inputs, for tests: of all types of elements, of old and new
// versions of the operators, with loops and branches, with sizes that only a run knows, and quantized. Others have
// functions, and names that stand for many values; Inline says what those mean.
//
//	c := onnxtest.Draw(1)
//	err := c.Write(ctx, "case")
//
// A case has the form of ONNX's own tests, without outputs. The script testdata/answer.js adds what ONNX
// Runtime makes of the inputs, and drops the cases that it refuses; testdata/kernels.txt lists what it has
// kernels for, so that it refuses few.
package onnxtest
