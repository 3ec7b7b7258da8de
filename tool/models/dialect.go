package models

import (
	"flag"
	"os"
	"path/filepath"
	"strings"

	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tool"
)

// aModel is what a model is called in errors.
const aModel = "an ONNX model"

// Options say what ONNX models a program has.
type Options struct {
	// Operators are those that are known. The default is ir.Standard.
	Operators *ir.Operators
}

// Dialect returns the dialect of ONNX models. Its subjects are files of models, and it brings the
// verbs that run them.
func Dialect(o Options) *tool.Dialect {
	if o.Operators == nil {
		o.Operators = ir.Standard()
	}
	return &tool.Dialect{
		Name:       ir.Dialect,
		Fields:     []string{fieldModel, fieldShapes, fieldValues},
		Files:      []string{fieldModel},
		Open:       o.world,
		Vocabulary: o.vocabulary,
		Subjects:   o.subjects,
		Domain:     o.domain,
		Ranges:     map[string][2]int{"threads": {1, 1 << 10}},
		Verbs:      []tool.Verb{evalVerb(), verifyVerb(), benchVerb(), infoVerb(), o.optVerb()},
	}
}

// declarePasses declares the flags that select passes for the graph of tensors. Models mean the same
// to all who run them, also where something is infinite or NaN, so passes that are free with that
// have to be asked for by their tags.
func declarePasses(cfg *tool.Config, fs *flag.FlagSet) *tool.Selection {
	s := tool.DeclareSelection(cfg, fs)
	s.Without(lower.FreeTags()...)
	return s
}

// isModel reports whether an argument is called like a model.
func isModel(arg string) bool { return strings.EqualFold(filepath.Ext(arg), ".onnx") }

// isFolder reports whether an argument is a folder.
func isFolder(arg string) bool {
	info, err := os.Stat(arg)
	return err == nil && info.IsDir()
}
