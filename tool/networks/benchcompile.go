package networks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/measure"
)

// A benchCase is a request of a benchmark file, with Kaldi's times.
type benchCase struct {
	name    string
	Config  string          `json:"config"`
	Request json.RawMessage `json:"request"`
	Seconds struct {
		Compile          float64 `json:"compile_s"`
		Optimize         float64 `json:"optimize_s"`
		ShortcutOptimize float64 `json:"shortcut_compile_optimize_s"`
		Run              float64 `json:"run_opt_s"`
	} `json:"kaldi_seconds_one_core"`
	Unit float64 `json:"same_run_openblas_sgemm_1024_seconds"`
}

// A compileTimes is a line of bench compile. Times are in units, or in milliseconds
// if there is no unit.
type compileTimes struct {
	Case        string  `json:"case"`
	UnitSeconds float64 `json:"unit_seconds,omitempty"`
	// Compiled without the shortcut, with it, and with it and optimized.
	NoShortcut float64 `json:"no_shortcut"`
	Shortcut   float64 `json:"shortcut"`
	Optimized  float64 `json:"shortcut_optimized"`
	// Kaldi's times; 0 if unknown.
	KaldiNoShortcut float64 `json:"kaldi_no_shortcut,omitempty"`
	KaldiShortcut   float64 `json:"kaldi_shortcut,omitempty"`
	KaldiOptimized  float64 `json:"kaldi_shortcut_optimized,omitempty"`
}

// readBenchCases reads the requests of a file, sorted by name.
func readBenchCases(file string) ([]*benchCase, error) {
	text, err := fileio.ReadFile(file, fileio.MaxText)
	if err != nil {
		return nil, err
	}
	var members map[string]*benchCase
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var cases []*benchCase
	for name, k := range members {
		if k == nil || k.Config == "" || len(k.Request) == 0 {
			return nil, fmt.Errorf("%s: %q needs a config and a request", file, fileio.Excerpt(name, 0))
		}
		k.name = fileio.PlainName(name)
		cases = append(cases, k)
	}
	slices.SortFunc(cases, func(a, b *benchCase) int { return strings.Compare(a.name, b.name) })
	return cases, nil
}

// benchCompile measures compile times for every request of a file and prints a table
// in Markdown.
func benchCompile(ctx context.Context, c *tool.Console, net *networkFlags, file, unit string, asJSON bool) error {
	_, opt, err := net.passes.BuildFor(net.vocabulary())
	if err != nil {
		return err
	}
	cases, err := readBenchCases(file)
	if err != nil {
		return err
	}
	if !asJSON {
		c.Print("| request | no shortcut | Kaldi | ratio | shortcut | Kaldi | ratio | and optimized | Kaldi | ratio |\n| --- |%s\n", strings.Repeat(" ---: |", 9))
	}
	networks := map[string]*nnet3.Nnet{}
	unitSeconds := 0.0
	var measured []measure.CompileTimes
	for _, k := range cases {
		nn := networks[k.Config]
		if nn == nil {
			if nn, _, err = net.network(c, filepath.Join(filepath.Dir(file), k.Config), net.seed); err != nil {
				return err
			}
			networks[k.Config] = nn
		}
		s, err := runUnit(ctx, unit)
		if err != nil {
			return err
		}
		// The unit is measured beside every case, and its smallest value is used for all of them.
		// So no line is printed before all cases are measured.
		if unitSeconds == 0 || s < unitSeconds { // other work can only make it slower
			unitSeconds = s
		}
		times, err := k.measure(ctx, nn, opt)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		measured = append(measured, times)
	}
	for i, k := range cases {
		t := k.in(measured[i], unitSeconds)
		if !asJSON {
			c.Print("| `%s` %s |\n", t.Case, t.cells())
		} else if err := tool.WriteJSON(c.Stdout, t); err != nil {
			return err
		}
	}
	return nil
}

// measure times a request.
func (k *benchCase) measure(ctx context.Context, nn *nnet3.Nnet, opt *optdb.Optimizer) (measure.CompileTimes, error) {
	req, err := computation.ReadRequestJSON(bytes.NewReader(k.Request), computation.NewNetworkInfo(nn, nil))
	if err != nil {
		return measure.CompileTimes{}, err
	}
	prepare(nn, req)
	return measure.Compile(ctx, nn, req, opt, patience())
}

// in converts times to multiples of the unit, or to milliseconds if the unit is 0.
func (k *benchCase) in(times measure.CompileTimes, unit float64) *compileTimes {
	t := &compileTimes{Case: k.name, UnitSeconds: unit}
	ours, kaldis := unit, k.Unit
	if unit == 0 {
		ours, kaldis = 1e-3, 1e-3
	}
	multiple := func(d time.Duration) float64 { return d.Seconds() / ours }
	t.NoShortcut, t.Shortcut, t.Optimized = multiple(times.NoShortcut), multiple(times.Shortcut), multiple(times.Shortcut+times.Optimize)
	if kaldis > 0 {
		t.KaldiNoShortcut, t.KaldiOptimized = k.Seconds.Compile/kaldis, k.Seconds.ShortcutOptimize/kaldis
		t.KaldiShortcut = max(0, k.Seconds.ShortcutOptimize-k.Seconds.Optimize) / kaldis
	}
	return t
}

// cells formats the times as cells of the table.
func (t *compileTimes) cells() string {
	var b strings.Builder
	for _, pair := range [...][2]float64{{t.NoShortcut, t.KaldiNoShortcut}, {t.Shortcut, t.KaldiShortcut}, {t.Optimized, t.KaldiOptimized}} {
		kaldi, ratio := "-", "-"
		if pair[1] > 0 {
			kaldi, ratio = fmt.Sprintf("%.3f", pair[1]), fmt.Sprintf("%.2f", pair[0]/pair[1])
		}
		fmt.Fprintf(&b, "| %.3f | %s | %s ", pair[0], kaldi, ratio)
	}
	return strings.TrimSpace(b.String()[:b.Len()-1])
}

// maxUnit bounds the output of the program that runUnit runs.
const maxUnit = 4096

// runUnit runs the program that prints the seconds of a unit. Without a program the
// result is 0.
func runUnit(ctx context.Context, program string) (float64, error) {
	if program == "" {
		return 0, nil
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.WaitDelay = fileio.Grace
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", program, err)
	}
	out, err := fileio.ReadAll(pipe, "its output", maxUnit)
	pipe.Close() // ends a program that goes on printing
	if waitErr := cmd.Wait(); err == nil {
		err = waitErr
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", program, err)
	}
	s, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil || !(s > 0) {
		return 0, fmt.Errorf("%s printed %.40q, not a number of seconds", program, out)
	}
	return s, nil
}
