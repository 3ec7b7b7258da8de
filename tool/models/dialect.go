package models

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/repro"
)

// aModel is what a model is called in errors.
const aModel = "an ONNX model"

// Dialect returns the dialect of ONNX models.
func Dialect() *tool.Dialect {
	return &tool.Dialect{
		Name:   "onnx",
		Fields: []string{"onnx-model"},
		Open: func(*tool.Console, string, *graphfile.File) (repro.World, error) {
			return nil, errors.New("graphs of ONNX models can't be read from files")
		},
		Ranges: map[string][2]int{"threads": {1, 1 << 10}},
		Verbs:  []tool.Verb{evalVerb(), verifyVerb(), benchVerb(), infoVerb()},
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
