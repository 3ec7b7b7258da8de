// Package computationtest helps to test computations. It runs them over opaque stand-ins for
// components ([Interpret], [Same]), so that a test needs only the shape of the network and a wrong
// operand shows in the result. It also reads small computations ([Parse]), makes them up
// ([Random]), and finds reference computations ([References]). It never imports nnet3/lower, whose
// tests use it.
package computationtest

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// opaque stands in for a component. Its output depends on everything that it reads.
type opaque struct {
	component.Component // nil: it is never read, written or run
	info                computation.ComponentInfo
}

func (o *opaque) Type() string                     { return o.info.Type }
func (o *opaque) InputDim() int                    { return o.info.InputDim }
func (o *opaque) OutputDim() int                   { return o.info.OutputDim }
func (o *opaque) Properties() component.Properties { return o.info.Properties }

// Net is a network of opaque components.
type Net []*opaque

// NewNet returns stand-ins for components.
func NewNet(infos []computation.ComponentInfo) Net {
	net := make(Net, len(infos))
	for i := range infos {
		net[i] = &opaque{info: infos[i]}
	}
	return net
}

// NumComponents returns the number of stand-ins.
func (n Net) NumComponents() int { return len(n) }

// Component returns stand-in i and its name.
func (n Net) Component(i int) (component.Component, string) { return n[i], n[i].info.Name }

// Info returns the facts about the components, for checks and printing.
func (n Net) Info() *computation.NetworkInfo {
	info := new(computation.NetworkInfo)
	for _, o := range n {
		info.Components = append(info.Components, o.info)
	}
	return info
}

// interpreter runs a computation over float64 matrices. Elements that were never written are NaN.
type interpreter struct {
	c       *computation.Computation
	net     Net
	mat     [][]float64
	memo    map[int32]float64
	state   map[int32]float64
	stats   map[int32]float64
	outputs map[string][]float64
	nodes   map[int32]int
	accepts map[int32]int
}

// Interpret runs the computation. It returns its outputs, by node and how often the node was
// provided before, and what the components learned, by number.
func Interpret(c *computation.Computation, net Net) map[string][]float64 {
	p := &interpreter{c: c, net: net, mat: make([][]float64, len(c.Matrices)), memo: map[int32]float64{}, state: map[int32]float64{},
		stats: map[int32]float64{}, outputs: map[string][]float64{}, nodes: map[int32]int{}, accepts: map[int32]int{}}
	for i := range c.Commands {
		p.run(&c.Commands[i])
	}
	for k, v := range p.state {
		p.outputs[fmt.Sprintf("state%d", k)] = []float64{v}
	}
	for k, v := range p.stats {
		p.outputs[fmt.Sprintf("stats%d", k)] = []float64{v}
	}
	return p.outputs
}

// noise returns a pseudo-random number in (-1, 1) that depends only on its arguments.
func noise(a, b, c int) float64 {
	x := uint64(a)*0x9E3779B97F4A7C15 + uint64(b)*0xC2B2AE3D27D4EB4F + uint64(c)*0x165667B19E3779F9
	x ^= x >> 31
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 29
	return float64(float64(int64(x>>11))/(1<<52)) - 1
}

// row returns row r of a view.
func (p *interpreter) row(sub, r int32) []float64 {
	s := p.c.Submatrices[sub]
	at := int(s.RowOffset+r)*int(p.c.Matrices[s.Matrix].Cols) + int(s.ColOffset)
	return p.mat[s.Matrix][at : at+int(s.NumCols)]
}

// load copies a view.
func (p *interpreter) load(sub int32) [][]float64 {
	m := make([][]float64, p.c.Submatrices[sub].NumRows)
	for r := range m {
		m[r] = slices.Clone(p.row(sub, int32(r)))
	}
	return m
}

// store copies or adds m to a view.
func (p *interpreter) store(sub int32, m [][]float64, add bool) {
	for r := range m {
		move(p.row(sub, int32(r)), m[r], 1, add)
	}
}

// move copies or adds alpha·src to dst.
func move(dst, src []float64, alpha float64, add bool) {
	for k := range dst {
		if add {
			dst[k] += float64(alpha * src[k])
		} else {
			dst[k] = alpha * src[k]
		}
	}
}

// fill makes a new matrix for a view that covers it.
func (p *interpreter) fill(sub int32, element func(i int) float64) {
	m := p.c.Submatrices[sub].Matrix
	p.mat[m] = make([]float64, int(p.c.Matrices[m].Rows)*int(p.c.Matrices[m].Cols))
	for i := range p.mat[m] {
		p.mat[m][i] = element(i)
	}
}

func (p *interpreter) run(cmd *computation.Command) {
	c, alpha := p.c, float64(cmd.Alpha)
	switch cmd.Type {
	case computation.AllocMatrix:
		p.fill(cmd.View(), func(int) float64 { return math.NaN() })
	case computation.DeallocMatrix:
		p.mat[c.Submatrices[cmd.View()].Matrix] = nil
	case computation.SwapMatrix:
		a, b := c.Submatrices[cmd.View()].Matrix, c.Submatrices[cmd.Source()].Matrix
		p.mat[a], p.mat[b] = p.mat[b], p.mat[a]
	case computation.SetConst:
		for r := range c.Submatrices[cmd.View()].NumRows {
			row := p.row(cmd.View(), r)
			for k := range row {
				row[k] = alpha
			}
		}
	case computation.AcceptInput:
		k := p.accepts[cmd.Node()]
		p.accepts[cmd.Node()]++
		p.fill(cmd.View(), func(i int) float64 { return noise(int(cmd.Node())*10+k, i, 7) })
	case computation.ProvideOutput:
		k := p.nodes[cmd.Node()]
		p.nodes[cmd.Node()]++
		p.outputs[fmt.Sprintf("node%d.%d", cmd.Node(), k)] = slices.Concat(p.load(cmd.View())...)
	case computation.Propagate:
		p.propagate(cmd)
	case computation.Backprop, computation.BackpropNoModelUpdate:
		p.backprop(cmd)
	case computation.MatrixCopy, computation.MatrixAdd:
		for r, src := range p.load(cmd.Source()) {
			move(p.row(cmd.View(), int32(r)), src, alpha, cmd.Type == computation.MatrixAdd)
		}
	case computation.CopyRows, computation.AddRows:
		for i, j := range c.Indexes[cmd.Vector()] {
			dst := p.row(cmd.View(), int32(i))
			if j >= 0 {
				move(dst, p.row(cmd.Source(), j), alpha, cmd.Type == computation.AddRows)
			} else if cmd.Type == computation.CopyRows {
				clear(dst)
			}
		}
	case computation.CopyRowsMulti, computation.AddRowsMulti, computation.CopyToRowsMulti, computation.AddToRowsMulti:
		add := cmd.Type == computation.AddRowsMulti || cmd.Type == computation.AddToRowsMulti
		to := cmd.Type == computation.CopyToRowsMulti || cmd.Type == computation.AddToRowsMulti
		for i, pair := range c.IndexesMulti[cmd.Vector()] {
			own := p.row(cmd.View(), int32(i))
			switch {
			case pair[0] >= 0 && to:
				move(p.row(pair[0], pair[1]), own, alpha, add)
			case pair[0] >= 0:
				move(own, p.row(pair[0], pair[1]), alpha, add)
			case cmd.Type == computation.CopyRowsMulti:
				clear(own)
			}
		}
	case computation.AddRowRanges:
		for i, r := range c.IndexesRanges[cmd.Vector()] {
			for j := r[0]; j < r[1]; j++ {
				move(p.row(cmd.View(), int32(i)), p.row(cmd.Source(), j), alpha, true)
			}
		}
	}
}

// mix adds to out a function of in: row by row for a simple component, of all of it for others.
func mix(out, in [][]float64, salt int, simple bool) {
	var all float64
	for r := range in {
		for c := range in[r] {
			all += float64(in[r][c] * noise(salt, c, r))
		}
	}
	for r := range out {
		// A component that is not simple mixes all rows, so any wrong row shows in all of the
		// result.
		s, t := all/8, all/8
		if simple && in != nil {
			s, t = 0, 0
			for c := range in[r] {
				s += float64(in[r][c] * noise(salt, c, -1))
				t += float64(in[r][c] * noise(salt, c, -2))
			}
		}
		for c := range out[r] {
			k := r
			if simple {
				k = 0
			}
			out[r][c] += float64(0.5*(float64(s*noise(salt, c, k+10))+float64(t*noise(salt, c, k+20)))) + float64(0.1*noise(salt, c, k+30))
		}
	}
}

// zeros returns a matrix of the size of a view.
func (p *interpreter) zeros(sub int32) [][]float64 {
	m := make([][]float64, p.c.Submatrices[sub].NumRows)
	for r := range m {
		m[r] = make([]float64, p.c.Submatrices[sub].NumCols)
	}
	return m
}

func (p *interpreter) propagate(cmd *computation.Command) {
	props := p.net[cmd.Component()].Properties()
	out := p.zeros(cmd.Output())
	var in [][]float64
	if cmd.Input() != 0 {
		in = p.load(cmd.Input())
	}
	mix(out, in, int(cmd.Component())*100, props&component.Simple != 0)
	p.store(cmd.Output(), out, props&component.PropagateAdds != 0 && cmd.Input() != cmd.Output())
	if cmd.Memo() > 0 {
		p.memo[cmd.Memo()] = checksum(out)
	}
	if cmd.StoresStats() {
		p.stats[cmd.Component()] += checksum(out)
	}
}

func checksum(m [][]float64) float64 {
	var s float64
	for r := range m {
		for c := range m[r] {
			s += float64(m[r][c] * noise(5, c, 0))
		}
	}
	return s
}

func (p *interpreter) backprop(cmd *computation.Command) {
	props := p.net[cmd.Component()].Properties()
	simple := props&component.Simple != 0
	dy := p.load(cmd.OutputDeriv())
	var x, y [][]float64
	update := checksum(dy)
	if cmd.Input() != 0 {
		x = p.load(cmd.Input())
		// Nothing but NaN if the input was never written.
		update *= 1 + float64(0*checksum(x))
		// A sum over rows, as the update of an affine component is, so that updates can be merged.
		for r := range min(len(x), len(dy)) {
			update += float64(checksum(x[r:r+1]) * checksum(dy[r:r+1]))
		}
	}
	if cmd.Output() != 0 {
		y = p.load(cmd.Output())
	}
	if cmd.InputDeriv() != 0 {
		dx := p.zeros(cmd.InputDeriv())
		mix(dx, dy, int(cmd.Component())*100+1, simple)
		if x != nil {
			mix(dx, x, int(cmd.Component())*100+2, simple)
		}
		if y != nil {
			mix(dx, y, int(cmd.Component())*100+3, simple)
		}
		// The memo of another run would show here.
		if cmd.Memo() > 0 {
			for r := range dx {
				dx[r][0] += p.memo[cmd.Memo()]
			}
		}
		p.store(cmd.InputDeriv(), dx, props&component.BackpropAdds != 0 && cmd.OutputDeriv() != cmd.InputDeriv())
	}
	if cmd.Type == computation.Backprop && props&component.Updatable != 0 {
		p.state[cmd.Component()] += update
	}
}
