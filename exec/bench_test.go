package exec_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// BenchmarkRun shows the overhead of a command: n additions of one element.
func BenchmarkRun(b *testing.B) {
	nn := parseNet(b, "input-node name=a dim=1\noutput-node name=out input=a\n")
	for _, n := range []int{100, 10000, 1000000} {
		c := computation.New()
		in, out := c.NewMatrix(1, 1, false), c.NewMatrix(1, 1, false)
		c.Commands = append(c.Commands,
			computation.NewCommand(computation.AcceptInput, in, 0),
			computation.NewCommand(computation.AllocMatrix, out),
			computation.NewScaledCommand(computation.SetConst, 0, out))
		for range n {
			c.Commands = append(c.Commands, computation.NewCommand(computation.MatrixAdd, out, in))
		}
		c.Commands = append(c.Commands,
			computation.NewCommand(computation.ProvideOutput, out, 1),
			computation.NewCommand(computation.DeallocMatrix, in))
		comp := newComputer(b, c, nn, exec.ComputerOptions{})
		x := kernel.New(1, 1)
		b.Run(fmt.Sprintf("commands=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				comp.Reset()
				accept(b, comp, "a", x)
				if err := comp.Run(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/command")
		})
	}
}
