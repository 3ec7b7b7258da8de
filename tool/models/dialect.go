package models

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// aModel is what a model is called in errors.
const aModel = "an ONNX model"

// Options say what ONNX models a program has.
type Options struct {
	// Operators are those whose types are known. The default is ir.Standard.
	Operators *ir.Operators
	// Lower has operators that can be computed besides those of package lower, by the names of domain
	// and operator with a dot between them.
	Lower map[string]lower.Operator
}

// complete returns the options with their defaults.
func (o Options) complete() Options {
	if o.Operators == nil {
		o.Operators = ir.Standard()
	}
	return o
}

// lowering returns how a model in a folder is computed.
func (o Options) lowering(dir string, opt *optdb.Optimizer) session.Options {
	return session.Options{Options: lower.Options{Operators: o.Lower, Types: o.Operators}, Dir: dir, Optimizer: opt}
}

// lowered returns a function that is about to run, in one goroutine. What its passes have left behind is given back
// first: a run takes about as much memory for weights that it prepares, and a garbage collector would let both grow
// together. So are the pages of the program that were only needed to start.
func lowered(ctx context.Context, m *onnx.Model, o session.Options, inputs map[string]*array.Array) (*session.Function, error) {
	fileio.ForgetProgram()
	o.Spend = true
	f, err := session.Model(ctx, m, o, inputs)
	debug.FreeOSMemory()
	return f, err
}

// Dialect returns the dialect of ONNX models. Its subjects are files of models, and it brings the
// verbs that run them.
func Dialect(o Options) *tool.Dialect {
	o = o.complete()
	d := &tool.Dialect{
		Name:       ir.Dialect,
		Fields:     []string{fieldModel, fieldShapes, fieldValues, fieldDefaults},
		Files:      []string{fieldModel},
		Open:       o.world,
		Write:      write,
		Query:      passes.ModelQuery,
		Vocabulary: o.vocabulary,
		Subjects:   o.subjects,
		Domain:     o.domain,
		Verbs:      []tool.Verb{o.evalVerb(), o.verifyVerb(), o.benchVerb(), o.infoVerb(), o.optVerb()},
	}
	d.Rules = func(cfg *tool.Config, entries []optdb.Listing) []rulecheck.Entry { return o.rules(cfg, d, entries) }
	return d
}

// declarePasses declares the flags that select passes, for nodes and for the graph of tensors.
func declarePasses(cfg *tool.Config, fs *flag.FlagSet) *tool.Selection {
	s := tool.DeclareSelection(cfg, fs)
	s.Completing(passes.ModelQuery)
	return s
}

// isModel reports whether an argument is called like a model.
func isModel(arg string) bool { return strings.EqualFold(filepath.Ext(arg), ".onnx") }

// isFolder reports whether an argument is a folder.
func isFolder(arg string) bool {
	info, err := os.Stat(arg)
	return err == nil && info.IsDir()
}
