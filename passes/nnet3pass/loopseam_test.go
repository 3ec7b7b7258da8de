package nnet3pass_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// seams are looped computations that hand matrices from round to round in all ways: a line is a
// command and the matrices that it concerns. All matrices have 2 rows and 3 columns; in and out
// belong to the caller.
var seams = map[string]string{
	"sum": `alloc s; zero s; label; accept in; alloc n; copy n s; add n in; free in; free s;
		alloc out; copy out n; provide out; marker; swap s n; goto`,
	// What is handed on is what was received, unchanged.
	"timeless": `alloc s; set s; label; accept in; add in s; alloc out; copy out in; free in; provide out; marker; goto`,
	// Everything of the first round is needed for two rounds more.
	"ages": `alloc a; set a; alloc b; zero b; label; accept in; alloc out; copy out a; add out b; add out in; provide out; marker;
		free b; swap b a; swap a in; goto`,
	// Two matrices take each other's place, and three.
	"circle": `alloc a; set a; alloc b; zero b; label; accept in; alloc m; copy m b; add m in; alloc n; copy n a; free in; free a; free b;
		alloc out; copy out m; provide out; marker; swap a m; swap b n; goto`,
	"pure circle": `alloc a; set a; alloc b; zero b; alloc c; zero c; label; accept in; alloc out; copy out a; add out in; free in; provide out;
		alloc k; copy k b; alloc m; copy m c; alloc n; copy n a; free a; free b; free c; marker; swap a k; swap b m; swap c n; goto`,
	// One value is handed on twice, and provided.
	"twice": `alloc a; set a; alloc b; zero b; label; accept in; alloc m; copy m a; add m b; add m in; alloc n; copy n m; free in; free a; free b;
		alloc out; copy out n; provide out; marker; swap a m; swap b n; goto`,
	// What was received is provided unchanged.
	"delay": `alloc a; set a; label; accept in; alloc out; copy out a; provide out; free a; marker; swap a in; goto`,
	// The loop has two rounds of the caller's in one, and something is provided before it begins.
	"accumulate": `alloc s; set s; label; accept in; add s in; free in; alloc out; copy out s; provide out; marker; goto`,
	"two segments": `alloc a; set a; accept first; alloc p; copy p first; add p a; provide p; free first; marker;
		label; accept in; alloc out; copy out a; add out in; provide out; alloc m; copy m in; add m a; marker;
		accept next; alloc last; copy last m; add last next; provide last; free a; free in; free next; marker; swap a m; goto`,
	// A zero constant and a part of a matrix are handed on.
	"constant": `alloc a; set a; alloc b; zero b; label; accept in; alloc out; copy out a; add out b; add out in; provide out; free a; free b;
		alloc m; zero m; alloc n; set n; free in; marker; swap a m; swap b n; goto`,
}

// parseLoop makes a computation of the text.
func parseLoop(t *testing.T, text string) *computation.Computation {
	t.Helper()
	c := computation.New()
	whole := map[string]int32{}
	label := int32(0)
	do := func(typ computation.CommandType, args ...int32) {
		c.Commands = append(c.Commands, computation.NewCommand(typ, args...))
	}
	types := map[string]computation.CommandType{"alloc": computation.AllocMatrix, "free": computation.DeallocMatrix, "copy": computation.MatrixCopy,
		"add": computation.MatrixAdd, "swap": computation.SwapMatrix, "marker": computation.NoOperationMarker}
	for line := range strings.SplitSeq(text, ";") {
		words := strings.Fields(line)
		var args []int32
		for _, w := range words[1:] {
			if whole[w] == 0 {
				whole[w] = c.NewMatrix(2, 3, false)
			}
			args = append(args, whole[w])
		}
		switch words[0] {
		case "zero", "set":
			c.Commands = append(c.Commands, computation.NewScaledCommand(computation.SetConst, map[string]float32{"zero": 0, "set": 0.25}[words[0]], args...))
		case "accept":
			do(computation.AcceptInput, args[0], 0)
		case "provide":
			do(computation.ProvideOutput, args[0], 1)
		case "label":
			label = int32(len(c.Commands))
			do(computation.NoOperationLabel)
		case "goto":
			do(computation.GotoLabel, label)
		default:
			typ, ok := types[words[0]]
			if !ok {
				t.Fatalf("no command %q", words[0])
			}
			do(typ, args...)
		}
	}
	return c
}

// TestLoopSeam optimizes loops, and compares many rounds.
func TestLoopSeam(t *testing.T) {
	nn, err := nnet3.ParseConfig(strings.NewReader("input-node name=input dim=3\noutput-node name=output input=input"), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range seams {
		t.Run(name, func(t *testing.T) {
			c := parseLoop(t, text)
			if err := computation.Check(c, computation.NewNetworkInfo(nn, nil), computation.CheckOptions{}); err != nil {
				t.Fatal(err)
			}
			rows := []index.Index{{T: 0}, {T: 1}}
			req := &computation.Request{
				Inputs:  []computation.IoSpecification{{Name: "input", Indexes: rows}},
				Outputs: []computation.IoSpecification{{Name: "output", Indexes: rows}},
			}
			var requests []*computation.Request
			for range 12 {
				requests = append(requests, req)
			}
			want := runSegments(t, nn, c, requests)
			for _, query := range queries[:longtest.Of(2, len(queries))] {
				got := optimize(t, nn, c, query)
				agree(t, query, runSegments(t, nn, got, requests), want, 1e-6)
				if testing.Verbose() {
					computation.Print(logWriter{t}, got, computation.NewNetworkInfo(nn, nil))
				}
			}
		})
	}
}

type logWriter struct{ t *testing.T }

func (w logWriter) Write(p []byte) (int, error) {
	w.t.Log(string(p))
	return len(p), nil
}
