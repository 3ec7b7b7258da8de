// Package computationtest helps to test what becomes of computations: it runs them with opaque stand-ins for the components, so that
// only the network's shape is needed and a wrong operand shows in the result, and it knows the reference computations.
package computationtest

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// opaque stands in for a component of which only the properties are known. What it computes depends on all it reads, so that
// a wrong operand shows in the result.
type opaque struct{ info computation.ComponentInfo }

func (o *opaque) Type() string                     { return o.info.Type }
func (o *opaque) InputDim() int                    { return o.info.InputDim }
func (o *opaque) OutputDim() int                   { return o.info.OutputDim }
func (o *opaque) Properties() component.Properties { return o.info.Properties }
func (o *opaque) Init(*component.ConfigLine)       {}
func (o *opaque) Fields(*component.Fields)         {}
func (o *opaque) Propagate(*component.Workspace, component.Precomputed, kernel.Matrix, kernel.Matrix) (component.Memo, error) {
	return nil, nil
}

// Net is a network of opaque components.
type Net []*opaque

// NewNet returns stand-ins for the components.
func NewNet(infos []computation.ComponentInfo) Net {
	net := make(Net, len(infos))
	for i := range infos {
		net[i] = &opaque{infos[i]}
	}
	return net
}

// NumComponents is the number of stand-ins.
func (n Net) NumComponents() int { return len(n) }

// Component is stand-in i.
func (n Net) Component(i int) (component.Component, string) {
	return n[i], n[i].info.Name
}

// interpreter runs a computation over float64 matrices with opaque components: slowly, and with every freed or never written
// element a NaN.
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

// Interpret runs the computation and returns its outputs, by node and how often it was provided, and what the components
// learned, by number.
func Interpret(c *computation.Computation, net Net) (map[string][]float64, error) {
	p := &interpreter{c: c, net: net, mat: make([][]float64, len(c.Matrices)), memo: map[int32]float64{}, state: map[int32]float64{},
		stats: map[int32]float64{}, outputs: map[string][]float64{}, nodes: map[int32]int{}, accepts: map[int32]int{}}
	for i := range c.Commands {
		if err := p.run(&c.Commands[i]); err != nil {
			return nil, fmt.Errorf("command %d: %w", i, err)
		}
	}
	for k, v := range p.state {
		p.outputs[fmt.Sprintf("state%d", k)] = []float64{v}
	}
	for k, v := range p.stats {
		p.outputs[fmt.Sprintf("stats%d", k)] = []float64{v}
	}
	return p.outputs, nil
}

// noise is a fixed pseudo-random number in (-1, 1).
func noise(a, b, c int) float64 {
	x := uint64(a)*0x9E3779B97F4A7C15 + uint64(b)*0xC2B2AE3D27D4EB4F + uint64(c)*0x165667B19E3779F9
	x ^= x >> 31
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 29
	return float64(float64(int64(x>>11))/(1<<52)) - 1
}

// at gives a pointer to an element of a view.
func (p *interpreter) at(sub, r, c int32) *float64 {
	s := p.c.Submatrices[sub]
	return &p.mat[s.Matrix][(s.RowOffset+r)*p.c.Matrices[s.Matrix].Cols+s.ColOffset+c]
}

func (p *interpreter) size(sub int32) (int32, int32) {
	s := p.c.Submatrices[sub]
	return s.NumRows, s.NumCols
}

func (p *interpreter) load(sub int32) [][]float64 {
	rows, cols := p.size(sub)
	m := make([][]float64, rows)
	for r := range m {
		m[r] = make([]float64, cols)
		for c := range m[r] {
			m[r][c] = *p.at(sub, int32(r), int32(c))
		}
	}
	return m
}

func (p *interpreter) store(sub int32, m [][]float64, add bool) {
	for r := range m {
		for c := range m[r] {
			if add {
				*p.at(sub, int32(r), int32(c)) += m[r][c]
			} else {
				*p.at(sub, int32(r), int32(c)) = m[r][c]
			}
		}
	}
}

func (p *interpreter) run(cmd *computation.Command) error {
	c := p.c
	alpha := float64(cmd.Alpha)
	switch cmd.Type {
	case computation.AllocMatrix:
		m := c.Submatrices[cmd.Arg1].Matrix
		p.mat[m] = make([]float64, int(c.Matrices[m].Rows)*int(c.Matrices[m].Cols))
		for i := range p.mat[m] {
			p.mat[m][i] = math.NaN()
		}
	case computation.DeallocMatrix:
		p.mat[c.Submatrices[cmd.Arg1].Matrix] = nil
	case computation.SwapMatrix:
		a, b := c.Submatrices[cmd.Arg1].Matrix, c.Submatrices[cmd.Arg2].Matrix
		p.mat[a], p.mat[b] = p.mat[b], p.mat[a]
	case computation.SetConst:
		rows, cols := p.size(cmd.Arg1)
		for r := range rows {
			for k := range cols {
				*p.at(cmd.Arg1, r, k) = alpha
			}
		}
	case computation.AcceptInput:
		m := c.Submatrices[cmd.Arg1].Matrix
		p.mat[m] = make([]float64, int(c.Matrices[m].Rows)*int(c.Matrices[m].Cols))
		k := p.accepts[cmd.Arg2]
		p.accepts[cmd.Arg2]++
		for i := range p.mat[m] {
			p.mat[m][i] = noise(int(cmd.Arg2)*10+k, i, 7)
		}
	case computation.ProvideOutput:
		k := p.nodes[cmd.Arg2]
		p.nodes[cmd.Arg2]++
		var flat []float64
		for _, row := range p.load(cmd.Arg1) {
			flat = append(flat, row...)
		}
		p.outputs[fmt.Sprintf("node%d.%d", cmd.Arg2, k)] = flat
	case computation.Propagate:
		p.propagate(cmd)
	case computation.Backprop, computation.BackpropNoModelUpdate:
		p.backprop(cmd)
	case computation.MatrixCopy, computation.MatrixAdd:
		m := p.load(cmd.Arg2)
		scale(m, alpha)
		p.store(cmd.Arg1, m, cmd.Type == computation.MatrixAdd)
	case computation.CopyRows, computation.AddRows:
		src := p.load(cmd.Arg2)
		_, cols := p.size(cmd.Arg1)
		for i, j := range c.Indexes[cmd.Arg3] {
			for k := range cols {
				d := p.at(cmd.Arg1, int32(i), k)
				switch {
				case j < 0 && cmd.Type == computation.CopyRows:
					*d = 0
				case j < 0:
				case cmd.Type == computation.CopyRows:
					*d = alpha * src[j][k]
				default:
					*d += float64(alpha * src[j][k])
				}
			}
		}
	case computation.CopyRowsMulti, computation.AddRowsMulti, computation.CopyToRowsMulti, computation.AddToRowsMulti:
		p.multi(cmd)
	case computation.AddRowRanges:
		src := p.load(cmd.Arg2)
		_, cols := p.size(cmd.Arg1)
		for i, r := range c.IndexesRanges[cmd.Arg3] {
			for j := r[0]; j < r[1]; j++ {
				for k := range cols {
					*p.at(cmd.Arg1, int32(i), k) += float64(alpha * src[j][k])
				}
			}
		}
	}
	return nil
}

func scale(m [][]float64, alpha float64) {
	for r := range m {
		for c := range m[r] {
			m[r][c] *= alpha
		}
	}
}

func (p *interpreter) multi(cmd *computation.Command) {
	alpha := float64(cmd.Alpha)
	_, cols := p.size(cmd.Arg1)
	for i, pr := range p.c.IndexesMulti[cmd.Arg2] {
		for k := range cols {
			own := p.at(cmd.Arg1, int32(i), k)
			if pr[0] < 0 {
				if cmd.Type == computation.CopyRowsMulti {
					*own = 0
				}
				continue
			}
			other := p.at(pr[0], pr[1], k)
			switch cmd.Type {
			case computation.CopyRowsMulti:
				*own = alpha * *other
			case computation.AddRowsMulti:
				*own += float64(alpha * *other)
			case computation.CopyToRowsMulti:
				*other = *own
			case computation.AddToRowsMulti:
				*other += float64(alpha * *own)
			}
		}
	}
}

// mix adds to out a function of in: row by row for simple components, of all of it for others.
func mix(out, in [][]float64, salt int, simple bool) {
	var all float64
	for r := range in {
		for c := range in[r] {
			all += float64(in[r][c] * noise(salt, c, r))
		}
	}
	for r := range out {
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

func zeros(rows, cols int32) [][]float64 {
	m := make([][]float64, rows)
	for r := range m {
		m[r] = make([]float64, cols)
	}
	return m
}

func (p *interpreter) propagate(cmd *computation.Command) {
	props := p.net[cmd.Arg1].Properties()
	rows, cols := p.size(cmd.Arg4)
	out := zeros(rows, cols)
	var in [][]float64
	if cmd.Arg3 != 0 {
		in = p.load(cmd.Arg3)
	}
	mix(out, in, int(cmd.Arg1)*100, props&component.Simple != 0)
	p.store(cmd.Arg4, out, props&component.PropagateAdds != 0 && cmd.Arg3 != cmd.Arg4)
	if cmd.Arg5 > 0 {
		p.memo[cmd.Arg5] = checksum(out)
	}
	if cmd.Arg6 == 1 {
		p.stats[cmd.Arg1] += checksum(out)
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
	props := p.net[cmd.Arg1].Properties()
	simple := props&component.Simple != 0
	dy := p.load(cmd.Arg5)
	var x, y [][]float64
	update := checksum(dy)
	if cmd.Arg3 != 0 {
		x = p.load(cmd.Arg3)
		update *= 1 + float64(0*checksum(x))
		for r := range min(len(x), len(dy)) {
			update += float64(checksum(x[r:r+1]) * checksum(dy[r:r+1]))
		}
	}
	if cmd.Arg4 != 0 {
		y = p.load(cmd.Arg4)
	}
	if cmd.Arg6 != 0 {
		rows, cols := p.size(cmd.Arg6)
		dx := zeros(rows, cols)
		mix(dx, dy, int(cmd.Arg1)*100+1, simple)
		if x != nil {
			mix(dx, x, int(cmd.Arg1)*100+2, simple)
		}
		if y != nil {
			mix(dx, y, int(cmd.Arg1)*100+3, simple)
		}
		if cmd.Arg7 > 0 {
			for r := range dx {
				dx[r][0] += p.memo[cmd.Arg7]
			}
		}
		p.store(cmd.Arg6, dx, props&component.BackpropAdds != 0 && cmd.Arg5 != cmd.Arg6)
	}
	if cmd.Type == computation.Backprop && props&component.Updatable != 0 {
		p.state[cmd.Arg1] += update
	}
}
