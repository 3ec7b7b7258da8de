// Package noise estimates what the products of a network add to its outputs if they multiply integers.
package noise

import (
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/index"
)

// Products smaller than this stay in float32: to quantize their rows takes about as long as they
// save. With 64 rows, 16 terms and 32 columns take 0.96 to 1.04 of the time of float32, and 32
// terms 0.4 to 0.75 (Zen 5, November 2026).
const (
	leastTerms   = 32 // of a sum
	leastColumns = 16 // of the result
)

// WideEnough reports whether a product is faster in integers.
func WideEnough(p *component.Product) bool {
	return p.Terms() >= leastTerms && p.OutputDim() >= leastColumns
}

// The sizes of an Estimate. Larger ones average better and take longer. With a single
// sequence, all hangs on one i-vector: the estimate for tdnnf_1k was between 8.6 and 16.7 %.
const (
	cycleSequences = 16
	cycleTimes     = 2
	cycleRows      = cycleSequences * cycleTimes
)

// cycleSweeps is how often an Estimate computes a recurrent network. The past of a row goes
// back one node that follows its reader for each sweep.
const cycleSweeps = 4

// An Estimate says what the quantized products of a network do to its outputs. It knows the
// network only, so the choices that follow from it are the same for all requests.
//
// It computes all nodes for standard normal inputs, in a few sequences, at a few times, which
// repeat: what comes after the last is the first. It does so twice. The second time every product
// adds noise to its result, with the mean square that the formula of QuantizationError gives. What
// the noise becomes is shared out: of the products that added to the input of a component, or to
// the terms of a sum, each has the same part of the output.
type Estimate struct {
	net      *nnet3.Nnet
	products []*noisyProduct
	number   []int // by component: that of its product, or -1
	nodes    []noisyRows
	late     bool // a node was read before it was computed
	pool     Pool
	ws       component.Workspace
}

// A noisyProduct is a component that can be quantized.
type noisyProduct struct {
	component int                   // its number in the network
	by        [2]*component.Product // by precision, from kernel.Int8 on
	number    int                   // of the product
	own       [2]float64            // by precision: the mean square of the errors that it adds
}

// noisyRows are the values of a node, a row for each time of each sequence, first without and then
// with noise.
type noisyRows struct {
	m     kernel.Matrix
	noise []float64 // by product: the mean square of what its noise has become
}

// exact and noisy return the values without and with noise.
func (v *noisyRows) exact() kernel.Matrix { return kernel.Rows(v.m, 0, cycleRows) }
func (v *noisyRows) noisy() kernel.Matrix { return kernel.Rows(v.m, cycleRows, cycleRows) }

// NewEstimate computes all nodes of a network. It reuses memory by the pool, unless that is
// nil.
func NewEstimate(net *nnet3.Nnet, pool Pool) *Estimate {
	e := &Estimate{net: net, number: make([]int, len(net.Components)), nodes: make([]noisyRows, len(net.Nodes)), pool: pool}
	for i, c := range net.Components {
		e.number[i] = -1
		p, ok := component.NewProduct(c)
		if !ok || !WideEnough(p) {
			continue
		}
		q := &noisyProduct{component: i, number: len(e.products)}
		fits := true
		for k, to := range []kernel.Precision{kernel.Int8, kernel.Int16} {
			q.by[k], ok = p.Quantized(to)
			fits = fits && ok
		}
		if fits {
			e.number[i] = len(e.products)
			e.products = append(e.products, q)
		}
	}
	if len(e.products) == 0 {
		return e
	}
	read := make([][]int, len(net.Nodes)) // by node, those that it is the last to read
	for i, last := range lastReaders(net) {
		if last >= 0 {
			read[last] = append(read[last], i)
		}
	}
	// Nodes are in an order in which only recurrence reads what comes later. Such values are zeros
	// in the first sweep, and from then on those of the sweep before.
	for sweep := 0; sweep == 0 || e.late && sweep < cycleSweeps; sweep++ {
		e.late = false
		for i := range net.Nodes {
			e.nodes[i] = e.node(i)
			for _, k := range read[i] {
				e.pool.give(e.nodes[k].m)
				e.nodes[k].m = kernel.Matrix{}
			}
		}
	}
	return e
}

// node computes a node.
func (e *Estimate) node(i int) noisyRows {
	switch n := &e.net.Nodes[i]; n.Kind {
	case nnet3.InputNode:
		v, r := e.rows(n.Dim), e.random(i)
		for k := range n.Dim * cycleRows {
			v.m.Data[k] = float32(r.NormFloat64())
		}
		kernel.Copy(v.noisy(), v.exact())
		return v
	case nnet3.DescriptorNode:
		return e.gather(n, e.net.OutputDim(i))
	case nnet3.ComponentNode:
		return e.run(i, e.nodes[i-1])
	default:
		from := e.nodes[n.Input]
		if from.m.Rows == 0 {
			e.late = true
			return e.rows(n.Dim)
		}
		v := noisyRows{kernel.Cols(from.m, n.DimOffset, n.Dim), slices.Clone(from.noise)}
		v.rescale()
		return v
	}
}

// random returns the random numbers of a node. They don't depend on what other nodes there are.
func (e *Estimate) random(node int) *rand.Rand {
	h := fnv.New64a()
	io.WriteString(h, e.net.NodeName(node))
	return rand.New(rand.NewPCG(1, h.Sum64()))
}

// rows returns zeros without noise.
func (e *Estimate) rows(cols int) noisyRows {
	return noisyRows{e.pool.take(2*cycleRows, cols), make([]float64, len(e.products))}
}

// gather computes the descriptor of a node. Noise counts as much as the columns that have it.
func (e *Estimate) gather(node *nnet3.Node, dim int) noisyRows {
	v := e.rows(dim)
	has := func(x index.Cindex) bool {
		if e.nodes[x.Node].m.Rows > 0 {
			return true
		}
		e.late = true
		return false
	}
	col := 0
	for i := range node.Descriptor.Parts {
		part := &node.Descriptor.Parts[i]
		cols, err := part.Columns(e.net.OutputDim)
		if err != nil || col+cols > dim {
			return v
		}
		for t := range cycleTimes {
			terms, constant, _ := part.Eval(index.Index{T: int32(t)}, has, nil)
			for first := 0; first < v.m.Rows; first += cycleTimes {
				to := kernel.Row(v.m, first+t)[col : col+cols]
				for k := range to {
					to[k] = constant
				}
				for _, x := range terms {
					kernel.AddVec(to, x.Scale, kernel.Row(e.nodes[x.Cindex.Node].m, first+cyclic(x.Cindex.Index.T)))
				}
			}
			for _, x := range terms {
				square := float64(float64(x.Scale)*float64(x.Scale)) * float64(cols)
				for k, n := range e.nodes[x.Cindex.Node].noise {
					v.noise[k] += float64(square * n)
				}
			}
		}
		col += cols
	}
	v.rescale()
	return v
}

// cyclic returns the row of a time in its sequence.
func cyclic(t int32) int { return int((t%cycleTimes + cycleTimes) % cycleTimes) }

// rescale scales the parts of products so that they add up to the mean square of the noise.
func (v *noisyRows) rescale() {
	sum := 0.0
	for _, n := range v.noise {
		sum += n
	}
	if sum == 0 {
		return
	}
	scale := v.total() / sum
	for k := range v.noise {
		v.noise[k] *= scale
	}
}

// total returns the mean square of the noise.
func (v *noisyRows) total() float64 {
	sum := 0.0
	for i := range cycleRows {
		noisy := kernel.Row(v.noisy(), i)
		for k, x := range kernel.Row(v.exact(), i) {
			d := float64(noisy[k]) - float64(x)
			sum += float64(d * d)
		}
	}
	return sum / float64(max(cycleRows*v.m.Cols, 1))
}

// run computes a component. What can't be computed at all times, or draws random numbers, is taken
// for a component that repeats its input.
func (e *Estimate) run(node int, in noisyRows) noisyRows {
	number := e.net.Nodes[node].Component
	c := e.net.Components[number]
	v := e.rows(c.OutputDim())
	call := newCyclicCall(c)
	if call != nil {
		call.pool = e.pool
		defer call.release()
	}
	if call == nil || !call.run(&e.ws, in.m, v.m) {
		for i := range v.m.Rows {
			to, from := kernel.Row(v.m, i), kernel.Row(in.m, i)
			for k := range to {
				if len(from) > 0 {
					to[k] = from[k%len(from)]
				}
			}
		}
	}
	copy(v.noise, in.noise)
	v.rescale()
	if n := e.number[number]; n >= 0 && call != nil {
		e.products[n].add(call, in.m, &v, e.random(node))
	}
	return v
}

// add adds the noise of a product to its result.
func (p *noisyProduct) add(call *cyclicCall, in kernel.Matrix, v *noisyRows, r *rand.Rand) {
	for k, q := range p.by {
		rms, _ := q.QuantizationError(call.pre, call.input(in), v.m.Rows)
		p.own[k] = float64(rms * rms)
	}
	// Noise of one size with random signs has the right mean square, and costs a bit of randomness
	// per element where normal numbers would cost as much as the product.
	bits, signs := math.Float32bits(float32(math.Sqrt(p.own[0]))), uint64(0)
	noisy := v.noisy().Data
	for i, x := range noisy {
		if i%64 == 0 {
			signs = r.Uint64()
		}
		noisy[i] = math.Float32frombits(bits^uint32(signs&1)<<31) + x
		signs >>= 1
	}
	v.noise[p.number] += p.own[0]
}

// share returns the mean square of the noise of an output node by product, relative to that of the
// output without the mean of each row. It returns nil if that is no number.
func (e *Estimate) share(node int) (share []float64) {
	v, square := e.nodes[node], 0.0
	row := make([]float64, v.m.Cols)
	for i := range cycleRows {
		for k, x := range kernel.Row(v.exact(), i) {
			row[k] = float64(x)
		}
		square += Spread(row)
	}
	square /= float64(max(cycleRows*v.m.Cols, 1))
	sum := 0.0
	for _, n := range v.noise {
		share = append(share, n/square)
		sum += n / square
	}
	// True for infinities and NaN.
	if sum-sum != 0 {
		return nil
	}
	return share
}

// Spread returns the sum of the squares of what elements differ from their mean, or of the elements
// themselves if there is only one.
func Spread(v []float64) float64 {
	mean := 0.0
	if len(v) > 1 {
		for _, x := range v {
			mean += x
		}
		mean /= float64(len(v))
	}
	sum := 0.0
	for _, x := range v {
		sum += float64((x - mean) * (x - mean))
	}
	return sum
}
