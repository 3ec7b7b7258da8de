// Package models is the dialect of ONNX models for package tool: the verb eval, which runs a model,
// and what the verbs verify, bench and info do with models.
package models
