package cluster_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/nnopt/nnopt/cluster"
	"github.com/nnopt/nnopt/exec/decodable"
)

// A program calls beam.Init in main, after flag.Parse.
func ExampleScore() {
	dir, err := os.MkdirTemp("", "scored")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	sum, err := cluster.Score(context.Background(), cluster.Job{
		Model:    "../nnet3/testdata/compute/tdnnf.mdl",
		Features: "scp:example/feats.scp",
		Ivectors: "scp:example/ivectors.scp",
		Out:      filepath.Join(dir, "out"),
		Query:    "+fast_run",
		Scoring:  decodable.Options{FrameSubsampling: 3},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum.Utterances, "utterances,", sum.Frames, "frames,", sum.Rows, "rows,", sum.Failed, "failed")
	// Output: 4 utterances, 446 frames, 150 rows, 0 failed
}
