package networks

import (
	"cmp"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// newDomain returns what the machine that checks rules knows of networks. The names of patterns are
// matrices of a few small sizes. The ops are those of a network in test mode that has the simple
// components of the registry (by default component.Kaldi) that can be made of a line such as
// "dim=3", with random parameters, and blocks and assembled matrices that fit the sizes.
func newDomain(types *component.Registry) (rulecheck.Domain, error) {
	types = cmp.Or(types, component.Kaldi())
	nn, ops := sampleNetwork(types)
	base, err := lower.Lower(computation.New(), nn)
	if err != nil {
		return nil, err
	}
	sizes := slices.Clone(sampleSizes)
	for _, op := range ops {
		dim := int32(op.C.InputDim())
		if !slices.ContainsFunc(sizes, func(t lower.MatrixType) bool { return t.Cols == dim }) {
			sizes = append(sizes, lower.MatrixType{Rows: 2, Cols: dim})
		}
	}
	params := sampleMoves()
	for _, op := range ops {
		params = append(params, op)
	}
	vocabulary := nnet3pass.VocabularyOf(types)
	w := world{nn, lower.Dialect{Network: nn}}
	d := rulecheck.World{
		Rules:    vocabulary,
		Params:   func(family string) []any { return membersOf(vocabulary, family, params) },
		Random:   randomMatrix,
		Evaluate: w.Evaluate,
		Compare:  compareMatrices,
		Smaller:  smallerMatrices,
		Format:   formatMatrix,
		Attach: func(g *fgraph.FunctionGraph) error {
			// No input or output is one of the sample network, so each gets a node of its own.
			return w.Attach(g, base.Graph, slices.Repeat([]int{-1}, len(g.Inputs())), slices.Repeat([]int{-1}, len(g.Outputs())))
		},
	}
	for _, t := range sizes {
		d.Types = append(d.Types, t)
	}
	return d.Domain(), nil
}

// domain returns the domain of rules for the networks of a program.
func (o *Options) domain(types string) (rulecheck.Domain, error) {
	if types != "" {
		return nil, tool.Usagef("--vars has no meaning for rules for networks, whose matrices have no declared types")
	}
	return newDomain(o.Components)
}

// membersOf returns those of some ops that belong to a family.
func membersOf(v pattern.Vocabulary, family string, ops []any) (members []any) {
	families, ok := v.(pattern.Families)
	if !ok {
		return nil
	}
	f, ok := families.Family(family)
	if !ok {
		return nil
	}
	for _, op := range ops {
		if f.Match(op.(fgraph.Op)) {
			members = append(members, op)
		}
	}
	return members
}

// randomMatrix draws elements from the normal distribution. A special matrix has zeros of both
// signs, small integers, large, tiny or not finite elements.
func randomMatrix(t fgraph.Type, special bool, rng *rand.Rand) any {
	size := t.(lower.MatrixType)
	m := kernel.New(int(size.Rows), int(size.Cols))
	kind := -1
	if special {
		kind = rng.IntN(6)
	}
	for i := range m.Rows {
		row := kernel.Row(m, i)
		for j := range row {
			x := rng.NormFloat64()
			switch kind {
			case 0:
				x = 0
			case 1:
				x = 1
			case 2:
				x = [...]float64{0, math.Copysign(0, -1), 1, -1, 2, 0.5}[rng.IntN(6)]
			case 3: // large enough to overflow exp, small enough for the bound of compareMatrices
				x *= 100
			case 4:
				x *= 1e-30
			}
			row[j] = float32(x)
		}
	}
	if kind == 5 {
		kernel.Row(m, rng.IntN(m.Rows))[rng.IntN(m.Cols)] = float32([...]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[rng.IntN(3)])
	}
	return m
}

// roundingBound is the largest difference of elements that counts as rounding, relative to the root
// mean square of the matrices, or to 1 if that is less. Where values of some hundreds cancel, what
// is left has an error of about 1e-5, however small it is.
const roundingBound = 1e-4

// compareMatrices returns the worst class of the differences of elements.
func compareMatrices(left, right any) rulecheck.Class {
	a, b := left.(kernel.Matrix), right.(kernel.Matrix)
	if a.Rows != b.Rows || a.Cols != b.Cols {
		return rulecheck.Wrong
	}
	bound := roundingBound * max(rootMeanSquare(a), rootMeanSquare(b), 1)
	class := rulecheck.Exact
	for i := range a.Rows {
		y := kernel.Row(b, i)
		for j, x := range kernel.Row(a, i) {
			x, y := float64(x), float64(y[j])
			switch {
			case math.Float64bits(x) == math.Float64bits(y) || x != x && y != y:
			case !finite(x):
				class = rulecheck.UnsafeNaN
			case !(math.Abs(x-y) <= bound):
				return rulecheck.Wrong
			case class == rulecheck.Exact:
				class = rulecheck.Rounding
			}
		}
	}
	return class
}

// rootMeanSquare returns that of the finite elements.
func rootMeanSquare(m kernel.Matrix) float64 {
	sum := 0.0
	for i := range m.Rows {
		for _, x := range kernel.Row(m, i) {
			if x := float64(x); finite(x) {
				sum += float64(x * x)
			}
		}
	}
	return math.Sqrt(sum / float64(max(m.Rows*m.Cols, 1)))
}

func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

// smallerMatrices yields matrices with simpler elements: first all of them, then those of a row, then
// one by one.
func smallerMatrices(_ fgraph.Type, value any) iter.Seq[any] {
	m := value.(kernel.Matrix)
	return func(yield func(any) bool) {
		// Elements only get simpler, or the search might go round in circles.
		try := func(r0, r1, c0, c1 int, simpler func(x float32) float32) bool {
			next, changed := kernel.Clone(m), false
			for i := r0; i < r1; i++ {
				row := kernel.Row(next, i)
				for j := c0; j < c1; j++ {
					if x := simpler(row[j]); complexity(x) < complexity(row[j]) {
						row[j], changed = x, true
					}
				}
			}
			return !changed || yield(next)
		}
		within := func(r0, r1, c0, c1 int) bool {
			for _, simpler := range simplerElements {
				if !try(r0, r1, c0, c1, simpler) {
					return false
				}
			}
			return true
		}
		if !within(0, m.Rows, 0, m.Cols) {
			return
		}
		for i := range m.Rows {
			if !within(i, i+1, 0, m.Cols) {
				return
			}
		}
		for i := range m.Rows {
			for j := range m.Cols {
				if !within(i, i+1, j, j+1) {
					return
				}
			}
		}
	}
}

// simplerElements make elements simpler.
var simplerElements = [...]func(float32) float32{
	func(float32) float32 { return 0 },
	func(float32) float32 { return 1 },
	func(float32) float32 { return -1 },
	func(x float32) float32 { return float32(math.Round(float64(x))) },
	func(x float32) float32 { return float32(math.Round(float64(x)*10) / 10) },
}

// complexity orders numbers by how hard they are to read.
func complexity(x float32) int {
	switch {
	case math.Float32bits(x) == 0:
		return 0
	case x == 1:
		return 1
	case x == -1:
		return 2
	case x == 0: // negative zero
		return 3
	case !finite(float64(x)):
		return 1000
	}
	return 3 + len(formatFloat(x))
}

// formatMatrix returns a matrix as a list of rows: [[1, 2], [3, 4]].
func formatMatrix(_ fgraph.Type, value any) string {
	m := value.(kernel.Matrix)
	rows := make([]string, m.Rows)
	for i := range rows {
		words := make([]string, m.Cols)
		for j, x := range kernel.Row(m, i) {
			words[j] = formatFloat(x)
		}
		rows[i] = "[" + strings.Join(words, ", ") + "]"
	}
	return "[" + strings.Join(rows, ", ") + "]"
}

func formatFloat(x float32) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }
