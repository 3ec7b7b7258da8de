package nnet3pass_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb/graphtest"
	"github.com/nnopt/nnopt/passes"
)

var update = flag.Bool("update", false, "write the graphs of testdata/graphs anew")

// TestGraphs runs passes on graphs in files.
func TestGraphs(t *testing.T) {
	graphtest.Run(t, "testdata/graphs/*.graph", graphtest.Config{
		Database: passes.Default(),
		Update:   *update,
		Open: func(folder string, head *graphfile.File) (graphfile.Dialect, error) {
			nn, _, err := pipeline.Load(filepath.Join(folder, head.Field("network")), 1)
			if err != nil {
				return nil, err
			}
			nn.SetTestMode(true)
			return lower.Dialect{Network: nn}, nil
		},
	})
}
