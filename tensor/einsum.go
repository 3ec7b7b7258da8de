package tensor

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor/array"
)

// Einsum returns a sum of products in Einstein's notation, as NumPy's einsum does. A letter names a
// dimension. Dimensions of one name go together, and those that the result does not name are
// summed:
//
//	ij,jk->ik    the product of matrices
//	bij,bjk      the product of each pair of matrices, without names of the result: bik
//	ii->i        the diagonal
//	...ij->...ji the transpose of the last two dimensions
//
// Pairs of operands are multiplied in the order that takes the fewest operations, as far as the
// types tell the sizes. It panics with an *Error if the text or the operands do not fit.
func Einsum(text string, operands ...*fgraph.Variable) *fgraph.Variable {
	e := parseEinsum(text, operands)
	e.checkSizes()
	// A dimension that broadcasts adds nothing. Without it, all dimensions of a name have one size from here
	// on.
	e.dropBroadcast()
	// What only one operand uses is summed before anything is multiplied, which makes all products smaller.
	for i := range e.terms {
		e.terms[i] = e.reduce(e.diagonal(e.terms[i]), e.usedBeside(i))
	}
	return e.arrange(e.multiply(e.terms))
}

// A label is the name of a dimension: a letter, or a negative number that counts the dimensions of
// an ellipsis from the end.
type label rune

// A term is a tensor with named dimensions.
type term struct {
	v      *fgraph.Variable
	labels []label
}

func (t term) has(l label) bool { return slices.Contains(t.labels, l) }

type einsum struct {
	terms  []term
	output []label
}

func parseEinsum(text string, operands []*fgraph.Variable) *einsum {
	inputs, output, explicit := strings.Cut(strings.ReplaceAll(text, " ", ""), "->")
	names := strings.Split(inputs, ",")
	if len(names) != len(operands) {
		fail("einsum", "%q has %d operands, not %d", text, len(names), len(operands))
	}
	e := new(einsum)
	var all []label
	ellipsis := 0 // the most dimensions that one replaces
	for i, v := range operands {
		labels, dots := parseLabels(text, names[i], TypeOf(v).NDim())
		if len(labels) != TypeOf(v).NDim() {
			fail("einsum", "operand %d is a %v, %q names %d dimensions", i+1, v.Type(), names[i], len(labels))
		}
		if TypeOf(v).IsCSR() {
			fail("einsum", "operand %d is a sparse matrix", i+1)
		}
		e.terms = append(e.terms, term{v, labels})
		all = append(all, labels...)
		ellipsis = max(ellipsis, dots)
	}
	if explicit {
		named := len(strings.ReplaceAll(output, "...", ""))
		labels, dots := parseLabels(text, output, named+ellipsis)
		if dots == 0 && ellipsis > 0 {
			fail("einsum", "the result of %q needs an ellipsis", text)
		}
		e.output = labels
	} else {
		// NumPy's rule where no result is named: the ellipsis, then what occurs once, in the order of the
		// alphabet.
		for d := ellipsis; d > 0; d-- {
			e.output = append(e.output, label(-d))
		}
		for _, l := range slices.Sorted(slices.Values(all)) {
			if l > 0 && count(all, l) == 1 {
				e.output = append(e.output, l)
			}
		}
	}
	for _, l := range e.output {
		if count(e.output, l) > 1 || !slices.Contains(all, l) {
			fail("einsum", "the result of %q names %q, which has to be the name of one dimension of the operands", text, rune(l))
		}
	}
	return e
}

func count(labels []label, l label) int {
	n := 0
	for _, m := range labels {
		if m == l {
			n++
		}
	}
	return n
}

// parseLabels reads the names of ndim dimensions. An ellipsis means those that have no other
// name; dots is their number.
func parseLabels(text, names string, ndim int) (labels []label, dots int) {
	before, after, found := strings.Cut(names, "...")
	if found {
		dots = max(0, ndim-len(before)-len(after))
	}
	add := func(letters string) {
		for _, r := range letters {
			if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
				fail("einsum", "%q in %q is no letter", r, text)
			}
			labels = append(labels, label(r))
		}
	}
	add(before)
	// Counted from the end, so that ellipses of different lengths go together like dimensions that broadcast.
	for d := dots; d > 0; d-- {
		labels = append(labels, label(-d))
	}
	add(after)
	return labels, dots
}

// checkSizes fails if two dimensions of one name are known to have different sizes, of which none
// is 1.
func (e *einsum) checkSizes() {
	sizes := make(map[label]int)
	for i, t := range e.terms {
		for d, l := range t.labels {
			n := TypeOf(t.v).Dim(d)
			if n == Unknown || n == 1 {
				continue
			}
			if m, ok := sizes[l]; ok && m != n {
				fail("einsum", "dimension %d of operand %d has size %d, another one of that name %d", d, i+1, n, m)
			}
			sizes[l] = n
		}
	}
}

// dropBroadcast drops dimensions of size 1 where others of that name are not known to have it.
func (e *einsum) dropBroadcast() {
	larger := make(map[label]bool)
	for _, t := range e.terms {
		for d, l := range t.labels {
			larger[l] = larger[l] || TypeOf(t.v).Dim(d) != 1
		}
	}
	for i, t := range e.terms {
		var order []int
		var labels []label
		for d, l := range t.labels {
			if TypeOf(t.v).Dim(d) != 1 || !larger[l] {
				order, labels = append(order, d), append(labels, l)
			}
		}
		e.terms[i] = term{DimShuffle(t.v, order...), labels}
	}
}

// usedBeside returns the labels of the result and of all operands but one.
func (e *einsum) usedBeside(i int) []label {
	used := slices.Clone(e.output)
	for k, t := range e.terms {
		if k != i {
			used = append(used, t.labels...)
		}
	}
	return used
}

// diagonal takes the diagonals of dimensions with the same name.
func (e *einsum) diagonal(t term) term {
	for d, l := range t.labels {
		same := slices.Index(t.labels[d+1:], l)
		if same < 0 {
			continue
		}
		same += d + 1
		order := slices.DeleteFunc(upTo(len(t.labels)), func(k int) bool { return k == d || k == same })
		x := DimShuffle(t.v, append([]int{d, same}, order...)...)
		n := dimSizes(x)
		// The first size counts in both dimensions, which would hide that the second one is larger.
		if n0, n1 := TypeOf(x).Dim(0), TypeOf(x).Dim(1); n0 == Unknown || n0 != n1 {
			n[0] = Assert(n[0], "einsum: the dimensions of a diagonal have one size", Map(array.Eq, n[0], n[1]))
		}
		i := ARange(Int(0), n[0], Int(1))
		labels := []label{l}
		for _, k := range order {
			labels = append(labels, t.labels[k])
		}
		// A name may occur more than twice.
		return e.diagonal(term{Take(x, i, i), labels})
	}
	return t
}

// reduce sums over the dimensions that nothing else uses.
func (e *einsum) reduce(t term, used []label) term {
	var axes []int
	var labels []label
	for d, l := range t.labels {
		if slices.Contains(used, l) {
			labels = append(labels, l)
		} else {
			axes = append(axes, d)
		}
	}
	if len(axes) == 0 {
		return t
	}
	return term{Sum(t.v, axes...), labels}
}

// product multiplies two terms. It sums over what is not used any more.
func (e *einsum) product(x, y term, used []label) term {
	var batch, summed, freeX, freeY []label
	for _, l := range x.labels {
		switch {
		case !y.has(l):
			freeX = append(freeX, l)
		case slices.Contains(used, l):
			batch = append(batch, l)
		default:
			summed = append(summed, l)
		}
	}
	for _, l := range y.labels {
		if !x.has(l) {
			freeY = append(freeY, l)
		}
	}
	// What is summed comes last on the left and first on the right, as in a product of matrices, of which there
	// is one for each element of the batch.
	p := contract(x.transposed(batch, freeX, summed), y.transposed(batch, summed, freeY), len(batch), len(summed))
	return term{p, slices.Concat(batch, freeX, freeY)}
}

// transposed returns the tensor with its dimensions in another order.
func (t term) transposed(labels ...[]label) *fgraph.Variable {
	order := lists.Map(slices.Concat(labels...), func(l label) int { return slices.Index(t.labels, l) })
	return DimShuffle(t.v, order...)
}

// arrange returns the result with its dimensions in order.
func (e *einsum) arrange(t term) *fgraph.Variable {
	return e.reduce(t, e.output).transposed(e.output)
}

// maxOrdered bounds the number of operands of which the best order is found by trying all. More
// operands are multiplied one after the other.
const maxOrdered = 8

// multiply multiplies terms, a pair at a time. It tries all orders: the cheapest way to make the
// product of a set of terms is the cheapest pair of ways to make the products of two parts.
func (e *einsum) multiply(terms []term) term {
	if len(terms) > maxOrdered {
		// To try all orders of n terms takes 3ⁿ steps.
		head := e.pairs(terms[:maxOrdered], terms[maxOrdered:])
		return e.multiply(append([]term{head}, terms[maxOrdered:]...))
	}
	return e.pairs(terms, nil)
}

// pairs multiplies at most maxOrdered terms. Later ones will be multiplied with the product.
func (e *einsum) pairs(terms, later []term) term {
	o := newOrdering(e, terms, later)
	all := 1<<len(terms) - 1
	// In the order of numbers, all parts of a set come before the set.
	for set := 1; set <= all; set++ {
		o.find(set)
	}
	return o.make(all)
}

// An ordering has, for each set of terms as bits, the cheapest way to make their product. Sets of
// labels are bits, too.
type ordering struct {
	e       *einsum
	terms   []term
	labels  []label // by bit
	sizes   []float64
	outside uint64   // what the result and later terms use
	own     []uint64 // the labels of each term
	cost    []float64
	left    []int // one of the two parts
}

// unknownSize is assumed for sizes that types don't tell.
const unknownSize = 32

func newOrdering(e *einsum, terms, later []term) *ordering {
	n := 1 << len(terms)
	o := &ordering{e: e, terms: terms, cost: make([]float64, n), left: make([]int, n)}
	for _, t := range terms {
		var own uint64
		for d, l := range t.labels {
			k := slices.Index(o.labels, l)
			if k < 0 {
				k = len(o.labels)
				o.labels, o.sizes = append(o.labels, l), append(o.sizes, unknownSize)
			}
			own |= 1 << k
			if s := TypeOf(t.v).Dim(d); s != Unknown {
				o.sizes[k] = float64(s)
			}
		}
		o.own = append(o.own, own)
	}
	o.outside = o.bits(e.output)
	// What later terms use must not be summed yet.
	for _, t := range later {
		o.outside |= o.bits(t.labels)
	}
	return o
}

func (o *ordering) bits(labels []label) (set uint64) {
	for _, l := range labels {
		if k := slices.Index(o.labels, l); k >= 0 {
			set |= 1 << k
		}
	}
	return set
}

// union returns the labels of all terms of a set.
func (o *ordering) union(set int) (all uint64) {
	for i, own := range o.own {
		if set>>i&1 != 0 {
			all |= own
		}
	}
	return all
}

// used returns the labels that something other than a set of terms uses.
func (o *ordering) used(set int) uint64 {
	return o.outside | o.union((1<<len(o.terms)-1)&^set)
}

// result returns the labels of the product of a set of terms.
func (o *ordering) result(set int) uint64 { return o.union(set) & o.used(set) }

// find finds the cheapest way for a set whose parts have been found.
func (o *ordering) find(set int) {
	if set&(set-1) == 0 {
		return
	}
	o.cost[set] = math.Inf(1)
	for part := (set - 1) & set; part > 0; part = (part - 1) & set {
		rest := set &^ part
		if part < rest {
			continue // the same two parts
		}
		steps := 1.0
		// Each combination of the labels of both factors is a multiplication.
		for all := o.result(part) | o.result(rest); all != 0; all &= all - 1 {
			steps *= o.sizes[bits.TrailingZeros64(all)]
		}
		// The first way is taken in any case: if all costs are infinite, none is less than another.
		if c := o.cost[part] + o.cost[rest] + steps; c < o.cost[set] || o.left[set] == 0 {
			o.cost[set], o.left[set] = c, rest
		}
	}
}

// make returns the product of a set.
func (o *ordering) make(set int) term {
	if set&(set-1) == 0 {
		return o.terms[bits.TrailingZeros(uint(set))]
	}
	var used []label
	for all := o.used(set); all != 0; all &= all - 1 {
		used = append(used, o.labels[bits.TrailingZeros64(all)])
	}
	left := o.left[set]
	return o.e.product(o.make(left), o.make(set&^left), used)
}
