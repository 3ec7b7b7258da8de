package tool

import (
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/repro"
	"github.com/nnopt/nnopt/tool/tensors"
)

// tensors is the dialect of graphs of tensors.
func (cfg *Config) tensors() *dialect {
	return &dialect{
		vocabulary: cfg.vocabulary,
		open: func(*Console, string, *graphfile.File) (repro.World, error) {
			return tensors.World(cfg.tensorDialect()), nil
		},
	}
}

// tensorDialect returns how graphs of tensors are written.
func (cfg *Config) tensorDialect() graphfile.Dialect {
	return graphfile.WithSections(expr.Dialect{Language: cfg.Language}, cfg.Sections)
}
