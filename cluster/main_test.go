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
	os.Exit(m.Run())
}
