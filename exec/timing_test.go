package exec_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec"
)

// TestObserve: the trace has a line for each command, and the timing counts runs.
func TestObserve(t *testing.T) {
	nn := parseNet(t, smallNet)
	p, err := exec.NewProgram(compileSmall(t, nn, false), nn)
	if err != nil {
		t.Fatal(err)
	}
	var trace strings.Builder
	timing := new(exec.Timing)
	comp, err := p.NewComputer(exec.ComputerOptions{Trace: &trace, Timing: timing})
	if err != nil {
		t.Fatal(err)
	}
	const runs = 3
	for range runs {
		comp.Reset()
		accept(t, comp, "input", random(rand.New(rand.NewPCG(3, 3)), 20, 5))
		run(t, comp)
	}
	rows := timing.ByCommand()
	if lines := strings.Count(trace.String(), "\n"); lines != runs*len(rows) {
		t.Errorf("%d lines for %d runs of %d commands", lines, runs, len(rows))
	}
	if !strings.Contains(trace.String(), "tdnn.Propagate(") || !strings.Contains(trace.String(), "rms 0 -> ") {
		t.Errorf("trace:\n%s", trace.String())
	}
	for _, r := range rows {
		if r.Runs != runs {
			t.Errorf("%s ran %d times", r.Name, r.Runs)
		}
	}
	var total time.Duration
	for _, r := range rows {
		total += r.Time
	}
	if total != timing.Total() {
		t.Errorf("the rows sum up to %v, the total is %v", total, timing.Total())
	}
	byComponent := timing.ByComponent()
	i := slices.IndexFunc(byComponent, func(r exec.TimingRow) bool { return r.Name == "tdnn" })
	if i < 0 {
		t.Fatalf("no row for the component tdnn: %v", byComponent)
	}
	// Input: 16 rows (t from -1 to 6 of two sequences) of 4; output: 10 rows of 3.
	if got, want := byComponent[i], int64(runs*4*(16*4+10*3)); got.Bytes != want || got.Runs != runs || got.Commands != 1 {
		t.Errorf("tdnn: %+v, want %d bytes", got, want)
	}
	if byType := timing.ByComponentType(); !slices.ContainsFunc(byType, func(r exec.TimingRow) bool { return r.Name == "TdnnComponent" }) {
		t.Errorf("no row for TdnnComponent: %v", byType)
	}
	other, err := exec.NewProgram(compileSmall(t, nn, false), nn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.NewComputer(exec.ComputerOptions{Timing: timing}); !errors.Is(err, exec.ErrOptions) {
		t.Errorf("another program's timing: got %v", err)
	}
}
