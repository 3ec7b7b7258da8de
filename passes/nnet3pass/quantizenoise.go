package nnet3pass

import (
	"hash/maphash"
	"reflect"
	"sync"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
)

// networkNoise is what an errorEstimate says about a network.
type networkNoise struct {
	products []productNoise
	shares   [][]float64 // by node, of output nodes: see errorEstimate.share
}

// productNoise is what a product in 8 bits adds.
type productNoise struct {
	component int     // its number in the network
	cost      float64 // multiplications for an output
	finer     float64 // the mean square of its noise in 16 bits, relative to that in 8
}

func newNetworkNoise(net *nnet3.Nnet) networkNoise {
	return noiseOf(net, newErrorEstimate(net, matrixPool{}))
}

// noiseOf returns what an estimate says.
func noiseOf(net *nnet3.Nnet, e *errorEstimate) networkNoise {
	rows := rowsPerOutput(net)
	noise := networkNoise{shares: make([][]float64, len(net.Nodes))}
	for _, p := range e.products {
		q := productNoise{component: p.component, cost: float64(rows[p.component] * p.by[0].Terms() * p.by[0].OutputDim())}
		if p.own[0] > 0 {
			q.finer = p.own[1] / p.own[0]
		}
		noise.products = append(noise.products, q)
	}
	for i := range net.Nodes {
		if net.IsOutputNode(i) {
			noise.shares[i] = e.share(i)
		}
	}
	return noise
}

// maxKnown is how many networks knownNoise remembers. A network without some of its outputs is
// another one.
const maxKnown = 8

// knownNoise remembers what is known of networks, since the shapes of chunks of one model are
// optimized one by one. Any number of goroutines may use it.
type knownNoise struct {
	mu   sync.Mutex
	seed maphash.Seed
	by   map[uint64]networkNoise
}

func newKnownNoise() *knownNoise {
	return &knownNoise{seed: maphash.MakeSeed(), by: map[uint64]networkNoise{}}
}

// of returns what is known of a network.
func (k *knownNoise) of(net *nnet3.Nnet) networkNoise {
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
		noise = newNetworkNoise(net)
		k.by[key] = noise
	}
	return noise
}

// key tells networks apart: by their nodes, their components as pointers, and the parameters of
// products, which change in place.
func (k *knownNoise) key(net *nnet3.Nnet) uint64 {
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
		if p, ok := component.NewProduct(c); ok && wideEnough(p) {
			if q, ok := p.Quantized(kernel.Int8); ok {
				maphash.WriteComparable(&h, q.ExpectedError())
			}
		}
	}
	return h.Sum64()
}
