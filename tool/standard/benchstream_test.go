package standard_test

import (
	"encoding/json"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tool"
)

// TestBenchStream: the report adds up, as text and as JSON.
func TestBenchStream(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	model := compute + "tdnnf.mdl"
	args := []string{"bench", "stream", "--model", model, "--frames-per-chunk=21", "--frame-subsampling-factor=3", "--max-streams=4", "--streams=3", "--seconds=2"}
	r := nnopt(t, append(args, "--rate=0")...).ok(t)
	contains(t, r.stdout, "3 streams of 2.00 s, as fast as they go", "600 frames in chunks of 21, 201 of 201 rows", "from its own frame", "memory of a stream")
	r = nnopt(t, append(args, "--rate=20")...).ok(t)
	contains(t, r.stdout, "at 20 times real time: as many frames as 60.0 streams", "10.5 ms", "a chunk of 10.5 ms and 50 ms")
	r = nnopt(t, append(args, "--rate=50", "--json", "--online-ivector-period=10", "--extra-left-context-initial=3", "--packet=5", "--max-wait=1ms", "--workers=2")...).ok(t)
	var j streamReport
	if err := json.Unmarshal([]byte(r.stdout), &j); err != nil {
		t.Fatal(err)
	}
	if j.Streams != 3 || j.Frames != 600 || j.Rows != 201 || j.RowsWanted != 201 || j.AudioSeconds != 2 || j.Rate != 50 || j.Packet != 5 || j.FramesPerChunk != 21 || j.ChunkSeconds != 0.0042 ||
		j.ElapsedSeconds < 0.04 || j.SecondsPerFrame <= 0 || j.Latency.Median <= 0 || j.Latency.P99 < j.Latency.Median || j.OwnLatency.Max < j.Latency.Max ||
		j.StreamBytes < j.StateBytes || j.StateBytes <= 0 || j.Workers != 2 || j.Threads < 1 || j.Query != tool.DefaultQuery {
		t.Errorf("%s", r.stdout)
	}
	found := result{status: statusFault, stderr: "not even one stream is in time"} // as on a busy machine
	if longtest.Enabled() {
		found = nnopt(t, append(args, "--rate=100", "--find", "--json")...)
	}
	if found.status == statusOK {
		if err := json.Unmarshal([]byte(found.stdout), &j); err != nil || !j.Holds || j.Rows != j.RowsWanted {
			t.Errorf("%s (%v)", found.stdout, err)
		}
	} else {
		contains(t, found.stderr, "not even one stream is in time")
	}
	bench := func(more ...string) result { return nnopt(t, append([]string{"bench", "stream"}, more...)...) }
	bench().fails(t, statusUsage, "--model expected")
	bench("--model", model, "--request=x").fails(t, statusUsage, "--request")
	bench("--model", model, "--streams=0").fails(t, statusUsage, "--streams=0")
	bench("--model", model, "--seconds=0").fails(t, statusUsage, "--seconds=0", "between 0.01 and")
	bench("--model", model, "--rate=-1").fails(t, statusUsage, "--rate=-1", "between 0 and")
	bench("--model", model, "--rate=nan").fails(t, statusUsage, "--rate=nan", "between 0 and")
	bench("--model", model, "--find", "--rate=0").fails(t, statusUsage, "rate of 0")
	bench("--model", model, "--max-wait=-1s").fails(t, statusUsage, "wait of -1s")
	bench("--model", model, "--max-streams=65").fails(t, statusUsage, "between 0 and 64")
	bench("--model", "none").fails(t, statusFault, "none")
}
