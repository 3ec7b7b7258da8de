package tool

import (
	"context"
	"errors"
	"flag"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/repro"
	"github.com/nnopt/nnopt/tool/tensors"
	"github.com/nnopt/nnopt/tool/view"
)

// anExpression is what an expression is called in errors.
const anExpression = "an expression"

// expressionOnly are the flags that have a meaning for expressions alone.
var expressionOnly = []string{"vars", "grad"}

// tensors is the dialect of graphs of tensors.
func (cfg *Config) tensors() *dialect {
	return &dialect{
		vocabulary: cfg.vocabulary,
		subjects: func(flags *subjectFlags, fs *flag.FlagSet) *source {
			f := &exprFlags{cfg: cfg, db: flags.passes.db, watch: flags.watch}
			f.declareInput(fs, "Variables of an expression")
			return &source{
				what: anExpression, flags: expressionOnly, claims: func(string) bool { return true },
				open: func(_ context.Context, c *Console, arg string) (*subject, error) {
					return f.subject(c, arg, flags.passes)
				},
				record: func(ctx context.Context, c *Console, arg string, in *view.Input) (*view.Subject, error) {
					return f.record(ctx, c, arg, flags.passes, in)
				},
			}
		},
		open: func(*Console, string, *graphfile.File) (repro.World, error) {
			return tensors.World(cfg.tensorDialect()), nil
		},
	}
}

// tensorDialect returns how graphs of tensors are written.
func (cfg *Config) tensorDialect() graphfile.Dialect {
	return graphfile.WithSections(expr.Dialect{Language: cfg.Language}, cfg.Sections)
}

// subject parses an expression, of which passes are to be selected by flags.
func (f *exprFlags) subject(c *Console, text string, flags *passFlags) (*subject, error) {
	if err := missingFile(text); err != nil {
		return nil, err
	}
	flags.vocab = f.cfg.vocabulary()
	query, opt, err := flags.build()
	if err != nil {
		return nil, err
	}
	f.query, f.added = query, flags.added
	scope, outputs, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	inputs := usedInputs(scope, outputs)
	g, err := tensor.NewGraph(inputs, outputs)
	if err != nil {
		return nil, err
	}
	s := &subject{dialect: f.cfg.tensorDialect(), opt: opt}
	s.setGraphs([]*fgraph.FunctionGraph{g})
	s.failed = func(ctx context.Context, err error, _ int) error { return f.failed(ctx, c, err, inputs, outputs) }
	return s, nil
}

// record optimizes an expression for a page.
func (f *exprFlags) record(ctx context.Context, c *Console, text string, flags *passFlags, in *view.Input) (*view.Subject, error) {
	if err := missingFile(text); err != nil {
		return nil, err
	}
	flags.vocab = f.cfg.vocabulary()
	query, _, err := flags.build()
	if err != nil {
		return nil, err
	}
	*in = view.Input{Expr: text, Variables: f.vars, Grad: f.grad, Query: query, Rules: flags.added.text}
	e, err := newViewExpr(f.cfg, *in)
	if err != nil {
		return nil, err
	}
	ctx, told := f.watch.start(ctx, c, e.opt)
	s, err := e.record(ctx)
	unknown := told()
	if failed := (*rewrite.Error)(nil); errors.As(err, &failed) {
		e.flags.watch = f.watch
		return nil, e.failed(ctx, c, err)
	}
	if err == nil {
		err = unknown
	}
	return s, err
}
