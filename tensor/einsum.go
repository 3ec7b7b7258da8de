package tensor

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
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
		if m, ok := constantInt(n[0]); !ok || !isConstantInt(n[1], m) {
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

func isConstantInt(v *fgraph.Variable, n int) bool {
	m, ok := constantInt(v)
	return ok && m == n
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
	var order []int
	for _, l := range slices.Concat(labels...) {
		order = append(order, slices.Index(t.labels, l))
	}
	return DimShuffle(t.v, order...)
}

// arrange returns the result with its dimensions in order.
func (e *einsum) arrange(t term) *fgraph.Variable {
	return e.reduce(t, e.output).transposed(e.output)
}
