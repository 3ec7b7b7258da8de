// Package standard puts the program nnopt together: the dialects of networks, of tensors and of ONNX models, and the
// standard database of passes. A [Program] with more of its own is another program.
package standard

import (
	"cmp"
	"context"
	"io"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/models"
	"github.com/nnopt/nnopt/tool/networks"
	"github.com/nnopt/nnopt/tool/tensors"
)

// A Program says what a program has besides, or in place of, what nnopt has. The zero value is nnopt.
type Program struct {
	// Name is the name of the program, in help and errors.
	Name string
	// Doc says what the program does, in a sentence for the list of verbs.
	Doc string
	// Database makes the database of passes that queries select from, anew at each call, as in
	// [tool.Config]. The default is passes.Default.
	Database func() (*optdb.SequenceDB, error)
	// Language has the ops and functions that expressions, rules and graphs may name. The default
	// is that of the ops of package tensor.
	Language *expr.Language
	// Components makes the components of networks that are read. The default has Kaldi's types,
	// see component.Kaldi.
	Components *component.Registry
	// Sections read the features that graph files hold in sections of these names, in addition to
	// those of this module; see graphfile.WithSections.
	Sections map[string]graphfile.SectionReader
	// Models says which ONNX models can be read.
	Models models.Options
	// Verbs join those of nnopt, or take the place of those of the same names.
	Verbs []tool.Verb
	// Dialects join those of networks, tensors and ONNX models, and are asked before them.
	Dialects []*tool.Dialect
}

// Main runs the program as the process, see [tool.Main].
func (p Program) Main() { tool.Main(p.Config()) }

// Run runs a verb, see [tool.Config.Run].
func (p Program) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return p.Config().Run(ctx, args, stdin, stdout, stderr)
}

// Config returns the configuration of the program.
func (p Program) Config() tool.Config {
	name := cmp.Or(p.Name, "nnopt")
	database := p.Database
	if database == nil {
		database = tool.Always(passes.Default)
	}
	return tool.Config{
		Name:     name,
		Doc:      cmp.Or(p.Doc, name+" optimizes computation graphs by a database of passes, and runs ONNX models and Kaldi nnet3 networks."),
		Database: database,
		Dialects: append(p.Dialects[:len(p.Dialects):len(p.Dialects)],
			models.Dialect(p.Models),
			networks.Dialect(networks.Options{Components: p.Components, Sections: p.Sections}),
			tensors.Dialect(tensors.Options{Language: p.Language, Sections: p.Sections})),
		Verbs: append(texts[:len(texts):len(texts)], p.Verbs...),
	}
}
