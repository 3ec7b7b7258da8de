package compile

import (
	"errors"
	"maps"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// TestLoopedGolden compiles the simple networks of the reference cases for endless input.
func TestLoopedGolden(t *testing.T) {
	for _, dir := range goldenDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c := readGolden(t, dir)
			if err := CheckSimple(c.nn); err != nil {
				t.Skip(err)
			}
			left, right, err := Context(c.nn)
			if err != nil {
				t.Skip(err)
			}
			chunk := ChunkSize(c.nn, 3, 20)
			nn, err := WithIvectorPeriod(c.nn, chunk)
			if err != nil {
				t.Fatal(err)
			}
			requests, err := LoopedRequests(nn, LoopedConfig{FramesPerChunk: chunk, FrameSubsampling: 3, LeftContext: left, RightContext: right, Sequences: 2})
			if err != nil {
				t.Fatal(err)
			}
			got, err := Looped(nn, requests, Options{})
			if errors.Is(err, ErrUnbounded) && strings.Contains(err.Error(), "all of the future") {
				t.Skip(err) // a bidirectional network
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := computation.Check(got, c.info, computation.CheckOptions{}); err != nil {
				t.Error(err)
			}
			t.Logf("context %d %d, chunk %d: %+v", left, right, chunk, got.Counts())
		})
	}
}

// TestLoopedProperty runs random networks over an endless input, and compares the first few chunks
// with the definition.
func TestLoopedProperty(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := (&generator{t: t, required: true}).network()
		nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
		if err != nil {
			t.Skip(err)
		}
		left, right, err := Context(nn)
		if err != nil {
			t.Skip(err)
		}
		cfg := LoopedConfig{LeftContext: left, RightContext: right, Sequences: rapid.IntRange(1, 2).Draw(t, "sequences")}
		cfg.FrameSubsampling = rapid.IntRange(1, 3).Draw(t, "subsampling")
		cfg.FramesPerChunk = ChunkSize(nn, cfg.FrameSubsampling, rapid.IntRange(1, 12).Draw(t, "advised"))
		requests, err := LoopedRequests(nn, cfg)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		c, err := Looped(nn, requests, Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := computation.Check(c, computation.NewNetworkInfo(nn, nil), computation.CheckOptions{}); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		runLooped(t, nn, requests, c, text)
	})
}

// runLooped runs twelve chunks.
func runLooped(t *rapid.T, nn *nnet3.Nnet, requests [3]*computation.Request, c *computation.Computation, text string) {
	const chunks = 12
	shift := requests[2].Outputs[0].Indexes[0].T - requests[1].Outputs[0].Indexes[0].T
	all := requests[:]
	for len(all) <= chunks {
		all = append(all, shifted(all[len(all)-1], shift))
	}
	input, output := int32(nn.NodeIndex("input")), int32(nn.NodeIndex("output"))
	// A chunk's results stay, even if later input would change them.
	kept := map[index.Cindex][]float64{}
	p := newInterpreter(c, nn)
	accepted, provided := 0, 0
	p.accept = func(int32) (rows []float64) {
		for _, ix := range all[accepted].Inputs[0].Indexes {
			rows = append(rows, value(int(input), ix, 0), value(int(input), ix, 1))
		}
		accepted++
		return rows
	}
	p.provide = func(_ int32, got []float64) {
		for _, ix := range all[provided].Inputs[0].Indexes {
			kept[index.Cindex{Node: input, Index: ix}] = []float64{value(int(input), ix, 0), value(int(input), ix, 1)}
		}
		o := &oracle{nn: nn, values: maps.Clone(kept)}
		for i, ix := range all[provided].Outputs[0].Indexes {
			o.keep(index.Cindex{Node: output, Index: ix}, kept)
			for k, want := range o.at(index.Cindex{Node: output, Index: ix}) {
				if d := got[2*i+k] - want; math.Abs(d) > 1e-9*(1+math.Abs(want)) {
					t.Fatalf("chunk %d: %v column %d is %g, want %g\n%s", provided, ix, k, got[2*i+k], want, text)
				}
			}
		}
		provided++
	}
	for i := 0; provided < chunks; i++ {
		if cmd := c.Commands[i]; cmd.Type == computation.GotoLabel {
			i = int(cmd.Args[0])
		} else if cmd.Type == computation.NoOperationMarker {
			continue
		} else if err := p.execute(cmd); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
}
