package expr_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// structures are expressions of the functions and indexes that move elements.
const structures = `diag(x) diag(v, 1) diag(X) diag(V, -1) diagonal(t, 0, 2, 1) diagonal(diag(x)) trace(X) eye(3) eye(n, 3, m) tril(X) triu(X, 1) tril(V, -1) fill_diagonal(X, s)
full((3, n), s) broadcast_to(x, (2, 3)) broadcast_to(c, X.shape) linspace(x, y, 3) linspace(s, b, 3)
squeeze(r) squeeze(X[:1], 0) expand_dims(x, 1) moveaxis(t, 0, -1) swapaxes(X, 0, 1) flip(X, 1) atleast_3d(x)
tile(x, 2) tile(X, (2, 1)) tile(X, (n, 1))[:3] repeat(x, 2) repeat(X, 2, 1)[:, ::2] repeat(x, i) repeat(X, k, 0) roll(x, 1) roll(X, m, 1) roll(X, 1) take(X, i, axis=1)
diff(x) diff(X, axis=0) diff(x, prepend=s) pad(x, 1) pad(X, (1, 0), constant_values=s) pad(X, 1, 'edge') pad(x, (0, 2), 'reflect') pad(X, 1, 'wrap')
split(X, 3)[1] split(x, [1])[1] array_split(X, 2, 1)[0] vstack([x, X]) hstack([X, c]) column_stack([x, X]) concatenate(split(x, 3)[::-1]) kron(X, x) block_diag(X, x) outer(x, y) meshgrid(x, y)[0]
clip(X, -0.5, 0.5) nonzero(p)[0] X[nonzero(p)[0]] det(X) slogdet(X + 3*eye(3))[1] matrix_inverse(X + 3*eye(3))
X[:, i] X[:, i][:, j] X[i, 1:] X[1:, i] t[:, i, 1] t[i, :, 1] t[i, :, j] t[:, i, j] X[i[:, None], j] X[i, None] X[:, [0, 2]] X[[0, 2]][1] t[0, :, [1, 2]]
x[p] x[x > 0] X[X > 0] X[:, p] X[p, 1:] X[p][:1] t[X > 0] x[[True, False, True]] X[[True, False, True]] X[p, 0] t[:, X > 0]
set_subtensor(X[:, i], Y) set_subtensor(X[:, 1], x) set_subtensor(X[:, [0, 2]], Y[:, :2]) set_subtensor(X[:, [0, 2]], 0)[:, [0, 2]] set_subtensor(X[[0, 2]], Y[:2])[[0, 2]] set_subtensor(X[i, 1:], s)
set_subtensor(t[:, [0, 1], [1, 2]], X[:, :2])[:, [0, 1], [1, 2]] set_subtensor(t[0, :, i], X) set_subtensor(x[p], 1) set_subtensor(x[x > 0], s) set_subtensor(X[X > 0], 2)[X > 0] set_subtensor(X[:, p], c)
inc_subtensor(X[:, i], Y) inc_subtensor(X[:, 1], x)[:, 1] inc_subtensor(X[:, [1, 1]], c) inc_subtensor(x[p], y[p]) inc_subtensor(X[X > 0], s) inc_subtensor(t[:, i, 1], X) inc_subtensor(X[1:, i], x) set_subtensor(X[:, None, 1], c)
grad(sum(sqr(X[:, i])), X) grad(sum(sqr(x[x > 0])), x) grad(sum(sqr(diag(X))), X) grad(sum(sqr(tile(X, (2, 1)))), X) grad(sum(sqr(set_subtensor(X[:, i], y))), [X, y])[1] grad(sum(sqr(pad(x, 1, 'wrap'))), x) grad(sum(sqr(diag(x))), x)`

// TestRandomStructure: random expressions with the functions and indexes that move elements keep
// their values when they are optimized, and read as they are written to a file.
func TestRandomStructure(t *testing.T) {
	var motifs []tensortest.Motif
	for _, text := range splitExpressions(structures) {
		if _, err := newScope(t, tensortest.Vars).Parse(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		motifs = append(motifs, tensortest.Motif(text))
	}
	var opts []*optdb.Optimizer
	for _, q := range []string{"+fast_run", "+fast_run -fusion -inplace", "+fast_compile", "+fast_run -canonicalize"} {
		opts = append(opts, passtest.Optimizer(t, q))
	}
	runs := 2000
	if !longtest.Enabled() {
		runs = 100
	}
	for seed := range runs {
		g := tensortest.NewGenerator(uint64(seed))
		g.Motifs = motifs
		g.Grow(2 + seed%12)
		inputs, args := g.Inputs()
		out := g.Outputs(1 + seed%3)
		graph, err := tensor.NewGraph(inputs, out)
		if err != nil {
			t.Fatal(err)
		}
		checkGraphFile(t, seed, graph)
		var want []*array.Array
		for k, opt := range append([]*optdb.Optimizer{nil}, opts[seed%len(opts)]) {
			got, err := runNumPy(t, inputs, args, out, opt)
			if err != nil {
				t.Fatalf("seed %d, optimizer %d: %v: %v", seed, k, out, err)
			}
			for i := range want {
				if d := array.MaxRelDiff(got[i], want[i]); !(d <= 2e-3) || got[i].DType() != want[i].DType() {
					t.Fatalf("seed %d, %v: %v differs by %v: %v, not %v", seed, opt.Query(), out[i], d, got[i], want[i])
				}
			}
			want = got
		}
	}
}

// splitExpressions splits text at the spaces outside of brackets.
func splitExpressions(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		}
		return depth == 0 && (r == ' ' || r == '\n')
	})
}
