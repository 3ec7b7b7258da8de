package computationtest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/computation/computationtest"
)

// text writes a computation as Parse reads it, without the line of totals: Parse counts equal views
// once.
func text(t testing.TB, c *computation.Computation, net computationtest.Net) string {
	t.Helper()
	var b, commands strings.Builder
	for _, info := range net.Info().Components {
		fmt.Fprintf(&b, "component %s %dx%d %v\n", info.Name, info.InputDim, info.OutputDim, info.Properties)
	}
	if err := computation.Print(&commands, c, net.Info()); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(commands.String(), "\n")
	return b.String() + rest
}

// TestParse: what is printed is read back, with all that Kaldi's computations have.
func TestParse(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/*/*/computation*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d computations, error %v", len(paths), err)
	}
	for _, path := range paths {
		c, net := computationtest.Load(t, path)
		for i := range c.Commands { // Parse takes precomputed indexes for none
			if cmd := &c.Commands[i]; cmd.Type == computation.Propagate || cmd.Type.IsBackprop() {
				cmd.Args[1] = 0
			}
		}
		want := text(t, c, net)
		got, gotNet, err := computationtest.Parse(want)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if diff := cmp.Diff(want, text(t, got, gotNet)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// TestParseLoop reads what has a label and a jump.
func TestParseLoop(t *testing.T) {
	data, err := os.ReadFile("../testdata/loop.txt")
	if err != nil {
		t.Fatal(err)
	}
	const relu = "component relu 3x3 simple|propagate-in-place\n"
	c, net, err := computationtest.Parse(relu + string(data))
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(string(data), "\n")
	want = relu + strings.NewReplacer("input", "node0", "output", "node1").Replace(want)
	if diff := cmp.Diff(want, text(t, c, net)); diff != "" {
		t.Error(diff)
	}
}

func TestParseFaults(t *testing.T) {
	const head = "component f 2x2 simple\nm1 3x2\nm2 3x2\n"
	for _, line := range []string{
		"m4 2x2", "m3 2x99999999", "m9 = 0", "m1(0:3, :) = 0", "m1(2:1, :) = 0", "m1 = ", "m1", "m1 = 0.5 *", "m1 = 0 0", "m1 = rows(m2, [0:5:2])",
		"m1 = rows(m2, [0:2:0])", "m1 = rows(m2, [2:0])", "m1 = rows(m2, [0 x99999999])", "m1 = rows(m2[0], )", "m1 = rows(m2[0]",
		"m1 = g.Propagate(m2)", "m1 = f.Propagate(m2", "m1 = f.Propagate(m2, memo x)", "component g 2x simple", "component g 2x2 quick",
		"accept m1", "goto c7", "swap(m1)", "rows(m1[0]) m2", "m1 += row_sums(m2, 0:7)", "frobnicate m1",
	} {
		if _, _, err := computationtest.Parse(head + line); !errors.Is(err, computationtest.ErrText) || !strings.Contains(err.Error(), "line 4") {
			t.Errorf("%q: %v", line, err)
		}
	}
	if _, _, err := computationtest.Parse(head + "m1 = 0 # and nothing else"); err != nil {
		t.Error(err)
	}
}

// TestRandom: what is made up is sound, and the interpreter runs it without meeting an undefined
// element.
func TestRandom(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := computationtest.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") })
		c, net, err := computationtest.Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := computation.Check(c, net.Info(), computation.CheckOptions{AllowUnused: true}); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for name, x := range computationtest.Interpret(c, net) {
			for _, v := range x {
				if v != v {
					t.Fatalf("%s is not defined\n%s", name, text)
				}
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("component f 2x2 simple\nm1 3x2\nm2 3x2\nm1 = 0\nm1 += 0.5 * rows(m2, [0, 2:1:-1, - x3])\nm1 = f.Propagate(m2)")
	f.Fuzz(func(t *testing.T, text string) {
		if c, net, err := computationtest.Parse(text); err == nil {
			_ = computation.Check(c, net.Info(), computation.CheckOptions{})
		}
	})
}
