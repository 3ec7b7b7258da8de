package saturate

import (
	"math"

	"github.com/nnopt/nnopt/fgraph"
)

// bounds are what is known of a class, see [Bounder].
type bounds struct {
	least, most float64
	cuts        int
}

// maxCuts bounds how often the bounds of a class become narrower: those of x = x/2 would without end.
const maxCuts = 8

// cut takes the bounds of both, and reports whether that is news.
func (k *bounds) cut(l bounds) bool {
	least, most := max(k.least, l.least), min(k.most, l.most)
	if least == k.least && most == k.most || k.cuts >= maxCuts {
		return false
	}
	k.least, k.most, k.cuts = least, most, k.cuts+1
	return true
}

// alike reports whether elements within both bounds are the same where they are numbers: one number, or none.
func (k bounds) alike(l bounds) bool {
	return k.least > k.most && l.least > l.most || k.least == k.most && k.least == l.least && k.most == l.most
}

// boundsOf returns the bounds of a variable by those of the classes that it is computed from.
func (b *bridge) boundsOf(v *fgraph.Variable) bounds {
	k := bounds{least: math.Inf(-1), most: math.Inf(1)}
	if v == nil {
		return k
	}
	if g, ok := b.given[v.Name()]; ok && v.Owner() == nil {
		k.least, k.most = g[0], g[1]
		return k
	}
	k.least, k.most = b.p.bounder.Bounds(v, func(in *fgraph.Variable) (float64, float64) {
		of := &b.bounds[b.g.Class(b.nodes[in])]
		return of.least, of.most
	})
	return k
}

// boundsOfAsked is what guards see as [pattern.Args.Bounds].
func (b *bridge) boundsOfAsked(i int) (least, most float64) {
	k := &b.bounds[b.g.Find(b.asked[i])]
	return k.least, k.most
}
