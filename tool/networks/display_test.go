package networks_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/display"
)

func TestFormats(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1312128: "1,312,128", -1234: "-1,234", -123: "-123"} {
		if got := display.Thousands(n); got != want {
			t.Errorf("thousands(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{12: "12 bytes", 1500: "1.5 kB", 1200128: "1.20 MB", 55064592: "55.1 MB"} {
		if got := display.Bytes(n); got != want {
			t.Errorf("bytesText(%d) = %s, want %s", n, got, want)
		}
	}
}

// TestProgress: the line says how far the run is, where that is known.
func TestProgress(t *testing.T) {
	if p := display.NewProgress(&tool.Console{Stderr: new(bytes.Buffer)}, nil); p != nil {
		t.Error("progress is shown on what is no terminal")
	}
	var none *display.Progress
	none.Add(1)
	none.Clear()
	none.End()
	p := &display.Progress{Position: func() (int64, int64) { return 25, 100 }}
	p.Add(1000)
	p.Add(234)
	if got, want := p.Line(2*time.Second), "██████░░░░░░░░░░░░░░░░░░  25 %  2 utterances, 1,234 frames, 617 frames/s, 6s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Position = func() (int64, int64) { return 25, -1 }
	if got, want := p.Line(2*time.Second), "2 utterances, 1,234 frames, 617 frames/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAlignCommands: what is elsewhere on the other side has moved, and both sides say where.
func TestAlignCommands(t *testing.T) {
	x, y, z := display.Command{Type: computation.Propagate, What: 1}, display.Command{Type: computation.Propagate, What: 2}, display.Command{Type: computation.Propagate, What: 3}
	rows := display.Align([]display.Command{x, y, z}, []display.Command{y, z, x})
	if len(rows) != 4 {
		t.Fatalf("%d rows, want 4", len(rows))
	}
	if r := rows[0]; r.Mark != display.Moved || r.Left != 0 || r.Other != 2 {
		t.Errorf("the first one: %c, to %d", r.Mark, r.Other)
	}
	if r := rows[3]; r.Mark != display.Moved || r.Right != 2 || r.Other != 0 {
		t.Errorf("the last one: %c, from %d", r.Mark, r.Other)
	}
}
