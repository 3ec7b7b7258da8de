package noise

import (
	"hash/maphash"
	"reflect"
	"sync"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
)

// Network is what an Estimate says about a network.
type Network struct {
	Products []Product
	Shares   [][]float64 // by node, of output nodes: see Estimate.share
}

// Product is what a product in 8 bits adds.
type Product struct {
	Component int     // its number in the network
	Cost      float64 // multiplications for an output
	Finer     float64 // the mean square of its noise in 16 bits, relative to that in 8
}

// Network returns what an estimate says.
func (e *Estimate) Network() Network {
	net := e.net
	rows := rowsPerOutput(net)
	noise := Network{Shares: make([][]float64, len(net.Nodes))}
	for _, p := range e.products {
		q := Product{Component: p.component, Cost: float64(rows[p.component] * p.by[0].Terms() * p.by[0].OutputDim())}
		if p.own[0] > 0 {
			q.Finer = p.own[1] / p.own[0]
		}
		noise.Products = append(noise.Products, q)
	}
	for i := range net.Nodes {
		if net.IsOutputNode(i) {
			noise.Shares[i] = e.share(i)
		}
	}
	return noise
}

// maxKnown is how many networks Known remembers. A network without some of its outputs is
// another one.
const maxKnown = 8

// Known remembers what is known of networks, since the shapes of chunks of one model are
// optimized one by one. Any number of goroutines may use it.
type Known struct {
	mu   sync.Mutex
	seed maphash.Seed
	by   map[uint64]Network
}

func NewKnown() *Known {
	return &Known{seed: maphash.MakeSeed(), by: map[uint64]Network{}}
}

// Of returns what is known of a network.
func (k *Known) Of(net *nnet3.Nnet) Network {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.key(net)
	noise, ok := k.by[key]
	if !ok {
		// Forget all. Programs work with one or two networks. One with more pays for an estimate
		// now and then, which is less than counting uses would cost all.
		if len(k.by) >= maxKnown {
			clear(k.by)
		}
		noise = NewEstimate(net, Pool{}).Network()
		k.by[key] = noise
	}
	return noise
}

// key tells networks apart: by their nodes, their components as pointers, and the parameters of
// products, which change in place.
func (k *Known) key(net *nnet3.Nnet) uint64 {
	var h maphash.Hash
	h.SetSeed(k.seed)
	for i := range net.Nodes {
		h.WriteString(net.ConfigLine(i))
		h.WriteByte('\n')
	}
	for _, c := range net.Components {
		if reflect.ValueOf(c).Comparable() {
			maphash.WriteComparable(&h, c)
		}
		if t, ok := c.(component.TestModer); ok {
			maphash.WriteComparable(&h, t.TestMode())
		}
		if p, ok := component.NewProduct(c); ok && WideEnough(p) {
			if q, ok := p.Quantized(kernel.Int8); ok {
				maphash.WriteComparable(&h, q.ExpectedError())
			}
		}
	}
	return h.Sum64()
}
