package repro_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tool/repro"
)

// seldom is a world in which few seeds draw inputs for which xorIsOr is wrong.
type seldom struct {
	computed
	at    map[uint64]bool
	draws int // in all; 0 if the world doesn't know
	asked *[]uint64
}

func (w seldom) Random(_ context.Context, g *fgraph.FunctionGraph, seed uint64) ([]any, error) {
	*w.asked = append(*w.asked, seed)
	if seed == 13 {
		return nil, errors.New("unlucky")
	}
	values := make([]any, len(g.Inputs()))
	for i := range values {
		if values[i] = uint64(0); w.at[seed] && i < 2 {
			values[i] = uint64(1)
		}
	}
	return values, nil
}

// sampled is a seldom that knows how many draws there are.
type sampled struct{ seldom }

func (w sampled) Draws(*fgraph.FunctionGraph) int { return w.draws }

// TestDebug: inputs are drawn until one shows a fault, or as many as a world or the caller says.
func TestDebug(t *testing.T) {
	for _, c := range []struct {
		name   string
		seed   uint64 // of the first draw
		at     uint64 // where the fault shows
		known  int    // draws that the world asks for; 0 if it doesn't
		draws  repro.Draws
		found  bool
		failed error
		asked  int
	}{
		{"the first", 0, 0, 0, repro.Draws{}, true, nil, 1},
		{"a later one", 0, 5, 0, repro.Draws{}, true, nil, 6},
		{"from a seed on", 4, 5, 0, repro.Draws{}, true, nil, 2},
		{"too late for the default", 0, repro.DefaultDraws, 0, repro.Draws{Time: -1}, false, nil, repro.DefaultDraws},
		{"too late for the world", 0, 4, 4, repro.Draws{}, false, nil, 4},
		{"in time for the world", 0, 40, 64, repro.Draws{Time: -1}, true, nil, 41},
		{"too late for the caller", 0, 4, 64, repro.Draws{Most: 2}, false, nil, 2},
		{"no time for a second one", 0, 4, 64, repro.Draws{Time: 1}, false, nil, 1},
		{"behind one that can't be drawn", 12, 14, 0, repro.Draws{}, true, nil, 3},
		{"none can be drawn", 13, 13, 1, repro.Draws{}, false, repro.ErrCase, 1},
	} {
		var asked []uint64
		w := seldom{at: map[uint64]bool{c.at: true}, draws: c.known, asked: &asked}
		cas := circuit(t, w, adder, xorIsOr)
		if c.known > 0 {
			cas.World = sampled{w}
		}
		cas.Seed = c.seed
		f, err := repro.Debug(t.Context(), cas, c.draws)
		if !errors.Is(err, c.failed) || f.Kind == repro.Values != c.found {
			t.Errorf("%s: %v, %v", c.name, f, err)
		}
		if n := len(asked); n != c.asked {
			t.Errorf("%s: %d draws %v, not %d", c.name, n, asked, c.asked)
		}
		want := c.seed
		if c.found {
			want = c.at
			if f.Rule != "xor_is_or" {
				t.Errorf("%s: to blame: %v", c.name, f)
			}
			if again, err := repro.Check(t.Context(), cas); err != nil || !again.Same(f) {
				t.Errorf("%s: the case fails with %v, %v", c.name, again, err)
			}
		}
		if cas.Seed != want {
			t.Errorf("%s: the seed is %d, not %d", c.name, cas.Seed, want)
		}
	}
}

// TestDebugGiven: with values there is nothing to draw, and without an Evaluator the graph is only checked.
func TestDebugGiven(t *testing.T) {
	var asked []uint64
	given := circuit(t, seldom{asked: &asked}, adder, xorIsOr)
	given.Values = []any{uint64(1), uint64(1), uint64(0)}
	for _, c := range []struct {
		cas  *repro.Case
		want repro.Kind
	}{{given, repro.Values}, {circuit(t, circuits{}, adder, xorIsOr), repro.None}} {
		if f, err := repro.Debug(t.Context(), c.cas, repro.Draws{Most: 3}); err != nil || f.Kind != c.want {
			t.Errorf("%v, %v, want %s", f, err, c.want)
		}
	}
	if len(asked) > 0 {
		t.Errorf("drawn: %v", asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := repro.Debug(ctx, given, repro.Draws{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
