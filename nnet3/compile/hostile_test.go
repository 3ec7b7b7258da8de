package compile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// TestHostileNetworks asks for the context of excessive networks and compiles them for a few
// frames. The result is an answer or an error, soon and with little memory.
func TestHostileNetworks(t *testing.T) {
	const noOp = "component name=c type=NoOpComponent dim=4"
	layers := func(n int, input string) []string {
		lines, last := []string{noOp}, "input"
		for i := range n {
			in := strings.NewReplacer("LAST", last, "STEP", fmt.Sprint(1<<min(i, 29))).Replace(input)
			lines = append(lines, fmt.Sprintf("component-node name=n%d component=c input=%s", i, in))
			last = fmt.Sprint("n", i)
		}
		return append(lines, "output-node name=output input="+last)
	}
	one := func(input string) []string { return layers(1, input) }
	numbers := func(first, end, step int) []string {
		var list []string
		for i := first; i < end; i += step {
			list = append(list, strconv.Itoa(i))
		}
		return list
	}
	either := func(times ...string) []string {
		for i, time := range times {
			times[i] = "Failover(Offset(n0, " + time + "), input)"
		}
		return one("Sum(" + strings.Join(times, ", ") + ")")
	}
	tdnn := func(times string) []string {
		return []string{"component name=c type=TdnnComponent input-dim=4 output-dim=4 time-offsets=" + times, "component-node name=x component=c input=input", "output-node name=output input=x"}
	}
	for _, c := range []struct {
		name             string
		lines            []string
		context, compile error
	}{
		{"a circle without delay", one("Sum(input, n0)"), ErrNotComputable, ErrNotComputable},
		{"without a beginning", one("Sum(input, Offset(n0, -1))"), ErrNotComputable, ErrNotComputable},
		{"many layers", layers(longtest.Of(400, 30000), "LAST"), nil, nil},
		{"wide layers", layers(longtest.Of(1000, 3000), "Sum(Offset(LAST, -1), Offset(LAST, 1))"), ErrUnbounded, ErrNotComputable},
		{"twice as far with every layer", layers(40, "Sum(LAST, Offset(LAST, STEP))"), ErrNotComputable, ErrNotComputable},
		{"a large modulus", []string{"output-node name=output input=Round(input, 2000000000)"}, ErrNotComputable, nil},
		{"the product of moduli", []string{"output-node name=output input=Append(Round(input, 101), Round(input, 103), Round(input, 107), Round(input, 109), Round(input, 113))"}, ErrNotComputable, nil},
		{"far offsets", tdnn("-2000000000,2000000000"), ErrNotComputable, ErrNotComputable},
		{"many offsets", tdnn(strings.Join(numbers(-50000, 50000, 1), ",")), ErrNotComputable, ErrNotComputable},
		{"many appended offsets", []string{"output-node name=output input=Append(Offset(input, " + strings.Join(numbers(-15000, 15000, 1), "), Offset(input, ") + "))"}, ErrNotComputable, ErrNotComputable},
		{"a switch of many", []string{"output-node name=output input=Switch(Offset(input, " + strings.Join(numbers(0, 5000, 1), "), Offset(input, ") + "))"}, ErrUnbounded, ErrNotComputable},
		{"deep rounds", []string{"output-node name=output input=" + strings.Repeat("Round(", 3900) + "input" + strings.Repeat(", 2)", 3900)}, nil, nil},
		{"a past without end", one("Failover(Offset(n0, -1), input)"), nil, nil},
		{"past or future", either("-1", "7"), nil, errCyclic},
		{"past or future, far", either(numbers(-1000000, 1000000, 39999)...), nil, nil},
		{"a past that anything begins", one("Sum(ReplaceIndex(input, t, 0), IfDefined(Offset(n0, -1)))"), ErrUnbounded, ErrUnbounded},
		{"a plane", one("Failover(Offset(n0, -1, 1), Failover(Offset(n0, 1, -3), input))"), ErrUnbounded, ErrUnbounded},
		{"a plane of many terms", one("Sum(ReplaceIndex(ReplaceIndex(input, x, 0), t, 0), IfDefined(Offset(n0, " + strings.Join(strings.Split("-1, 1|1, -1|-7, 3|5, 0|0, 5|0, -9|3, 3|90, 0|-90, 7|1, 8|4, -4|8, 4", "|"), ")), IfDefined(Offset(n0, ") + ")))"), ErrUnbounded, ErrUnbounded},
	} {
		t.Run(c.name, func(t *testing.T) {
			if slices.Contains([]string{"a plane of many terms", "a plane", "many offsets", "many appended offsets", "past or future, far", "a past that anything begins"}, c.name) {
				longtest.Only(t)
			}
			nn := parse(t, append([]string{"input-node name=input dim=4"}, c.lines...)...)
			check := func(what string, want error, most uint64, f func() error) {
				var err error
				if used := alloctest.Bytes(func() { err = f() }); used > most {
					t.Errorf("%s: %d MiB were allocated", what, used>>20)
				}
				if what == "looping" {
					if err != nil && !errors.Is(err, ErrUnbounded) && !errors.Is(err, ErrNotComputable) && !errors.Is(err, errCyclic) {
						t.Errorf("%s: %.300v", what, err)
					}
				} else if !errors.Is(err, want) {
					t.Errorf("%s: %.300v, want %v", what, err, want)
				}
				if errors.Is(err, ErrUnbounded) && !strings.Contains(err.Error(), "of node") && !strings.Contains(err.Error(), "modulo 5000") {
					t.Errorf("%s: %v doesn't say of what there is too much", what, err)
				}
			}
			check("context", c.context, 256<<20, func() error {
				_, _, err := Context(nn, "output")
				return err
			})
			check("looping", nil, uint64(512<<20+len(c.lines)<<17), func() error {
				requests, err := LoopedRequests(nn, LoopedConfig{FramesPerChunk: 20, LeftContext: 3, RightContext: 5})
				if err != nil {
					t.Fatal(err)
				}
				_, err = Looped(nn, requests, Options{})
				return err // whatever it is
			})
			check("compiling", c.compile, 512<<20, func() error {
				_, err := Compile(nn, ask(rowsOf{"input": at(1, 0, 20)}, rowsOf{"output": at(1, 0, 20)}), Options{})
				return err
			})
		})
	}
}

// TestLimitsAreFar checks that realistic full-size networks stay away from the limits by a factor
// that does not depend on the length of chunks, and that ten thousand frames of 64 different
// sequences are not too much.
func TestLimitsAreFar(t *testing.T) {
	names := []string{"xvector", "tdnnf_1k"}
	if longtest.Enabled() {
		names = nil
	}
	var done []string
	for _, f := range fullSizes(t, names...) {
		if slices.Contains(done, f.nn.Nodes[len(f.nn.Nodes)-1].Name+strconv.Itoa(len(f.nn.Nodes))) {
			continue // another request for the same network
		}
		done = append(done, f.nn.Nodes[len(f.nn.Nodes)-1].Name+strconv.Itoa(len(f.nn.Nodes)))
		left, right, err := Context(f.nn)
		if err != nil {
			t.Fatal(err)
		}
		net, err := newNetwork(f.nn)
		if err != nil {
			t.Fatal(err)
		}
		for _, frames := range []int32{1, 100, 1000} {
			req := ask(rowsOf{"input": at(1, -int32(left), frames+max(int32(right), 20))}, rowsOf{"output": at(1, 0, frames)})
			if f.nn.NodeIndex(ivectorName) >= 0 {
				req.Inputs = append(req.Inputs, computation.IoSpecification{Name: ivectorName, Indexes: at(1, 0, 1)})
			}
			given, wanted := countRows(req.Inputs), countRows(req.Outputs)
			b := newBuilder(net, 1, newLimits(Options{}, given, wanted, len(net.nodes)), 1)
			if err := b.buildSegment(&segment{request: req}, lanes{0}); err != nil {
				t.Fatal(err)
			}
			rows, edges := len(b.graph.vertices), len(b.graph.deps)
			if rows > (given+wanted)*len(net.nodes) || edges > 4*rows || b.limits.steps > 4*edges {
				t.Errorf("%s: %d frames: %d rows, %d dependencies, looked at %d times again; limits %+v", f.name, frames, rows, edges, b.limits.steps, b.limits)
			}
			if frames == 1000 && (rows*10*64 > maxRows || edges*10*64 > maxEdges) {
				t.Errorf("%s: %d rows and %d dependencies are too many to have 640 times as many", f.name, rows, edges)
			}
		}
	}
}

// TestGrowth checks that memory grows in proportion to the length of a chain of nodes, and to the
// length of a recurrence of which only the end is wanted, as many hops from its beginning as there
// are frames.
func TestGrowth(t *testing.T) {
	chain := func(n int) error {
		lines, last := []string{"input-node name=input dim=4", "component name=c type=NoOpComponent dim=4"}, "input"
		for i := range n {
			lines = append(lines, fmt.Sprintf("component-node name=n%d component=c input=%s", i, last))
			last = fmt.Sprint("n", i)
		}
		_, err := Compile(parse(t, append(lines, "output-node name=output input="+last)...), ask(rowsOf{"input": at(1, 0, 1)}, rowsOf{"output": at(1, 0, 1)}), Options{})
		return err
	}
	nn := parse(t, recurrent...)
	last := func(n int) error {
		_, err := Compile(nn, ask(rowsOf{"input": at(1, 0, int32(n))}, rowsOf{"output": at(1, int32(n)-1, int32(n))}), Options{})
		return err
	}
	for name, run := range map[string]func(int) error{"chain": chain, "last frame": last} {
		var used [2]uint64
		for i, n := range []int{longtest.Of(1000, 2000), longtest.Of(20000, 40000)} {
			allocated := alloctest.Start()
			if err := run(n); err != nil {
				t.Fatalf("%s of %d: %v", name, n, err)
			}
			used[i] = allocated()
		}
		if used[1] > 40*used[0] {
			t.Errorf("%s: 20 times as long takes %d bytes, not %d", name, used[1], used[0])
		}
	}
}
