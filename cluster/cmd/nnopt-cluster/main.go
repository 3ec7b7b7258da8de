// Command nnopt-cluster is the program nnopt with verbs that work on many machines: score for corpora of speech, infer
// for records and an ONNX model.
//
//	nnopt-cluster score [flags] MODEL FEATS OUT
//	nnopt-cluster infer [flags] MODEL RECORDS OUT
//
// Where a Beam runner starts it, it is a worker.
package main

import (
	"flag"
	"os"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/gcs" // names that begin with gs://
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/s3"  // names that begin with s3://

	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/standard"
)

func main() {
	if slices.Contains(os.Args, "--worker=true") || slices.Contains(os.Args, "-worker=true") || slices.Contains(os.Args, "--worker") {
		flag.Parse()
		beam.Init() // works and does not return
		return
	}
	config().Main()
}

// config adds the verbs to those of nnopt.
func config() standard.Program {
	return standard.Program{
		Name:  "nnopt-cluster",
		Doc:   "nnopt-cluster is nnopt with verbs that score corpora, and run ONNX models over records, on many machines, by Apache Beam.",
		Verbs: []tool.Verb{scoreVerb(), inferVerb()},
	}
}
