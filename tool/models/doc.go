// Package models is the dialect of ONNX models for package tool. It says how their graphs are run,
// compared and written, and how rules for them are checked; it brings the verb eval, which runs a
// model, and what the verbs opt, verify, bench and info do with models.
package models
