package cluster

import (
	"flag"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

func TestMain(m *testing.M) {
	flag.Parse()
	beam.Init()
	firstDelay = time.Millisecond
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(runIn(m))
}

// runIn runs the tests with a folder of their own for temporary files: Beam leaves one for each
// job.
func runIn(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nnopt-cluster-*")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	return m.Run()
}
