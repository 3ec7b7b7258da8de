package expr_test

// structureGradients are expressions of what makes, moves, joins, selects and changes elements,
// whose gradients are compared with finite differences.
var structureGradients = []string{
	"diag(x)", "diag(x, 2)", "diag(x, -1)", "diag(X)", "diag(X, 1)", "diag(X, -2)", "diag(X, 7)", "diag(specify_shape(X, 3, 3), -1)", "diagonal(X, 1, 1, 0)", "diagonal(specify_shape(X, 3, 3), 1, 1, 0)", "diagonal(t)",
	"diagonal(t, 1, 2, 0)", "diagonal(t, -1, 1, 2)", "trace(X)", "trace(t, 1, 0, 2)", "eye(3)*X", "tril(X)", "triu(X, 1)", "tril(t, -1)", "tril(x)", "fill_diagonal(X, s)", "fill_diagonal(X, x)", "t.mT", "broadcast_arrays(X, c)[1]", "X[:, i].inc(Y)",
	"full((2, 3), s)", "full_like(X, s)", "broadcast_to(x, (2, 3))", "broadcast_to(c, (2, 3, 3))", "linspace(x, y, 4)", "linspace(s, a, 3, endpoint=False)", "linspace(s, a, 1)",
	"squeeze(r)", "squeeze(x[:1], 0)", "expand_dims(X, (0, 2))", "swapaxes(t, 0, 2)", "moveaxis(t, 0, -1)", "transpose(t, (1, 2, 0))", "flip(X)", "flip(t, 1)", "atleast_3d(x)",
	"tile(x, 2)", "tile(X, (2, 1, 2))", "tile(r, (2, 1))", "repeat(X, 2)", "repeat(X, 2, 1)", "repeat(x, [1, 0, 2])", "repeat(X, i, 0)", "roll(X, 1)", "roll(X, -1, 1)", "roll(t, (1, 2), (0, 2))",
	"diff(x)", "diff(X, 2, 0)", "diff(X, prepend=c)", "pad(X, 1, constant_values=s)", "pad(X, ((1, 0), (0, 2)), constant_values=((1, s), (a, b)))", "pad(X, (1, 2), 'edge')", "pad(X, 2, 'reflect')", "pad(x, 2, 'symmetric')", "pad(x, 4, 'wrap')",
	"split(x, 3)[1]", "split(X, [1], 1)[1]", "array_split(X, 2, 1)[0]", "vstack([x, X])", "hstack([x, y])", "column_stack([x, X])", "dstack([x, y])", "concatenate([X, x], axis=None)",
	"kron(X, Y)", "kron(x, Y)", "kron(t, X)", "det(X)", "det(t[1])", "slogdet(X + eye(3))[1]", "slogdet(X + eye(3))[0] + X", "matrix_inverse(X + eye(3))", "matrix_inverse(X[:2, :2] + 2*eye(2))", "block_diag(X, x, s)", "outer(X, y)", "meshgrid(x, y)[0]", "meshgrid(x, y, sparse=True)[1]", "clip(X, -0.3, 0.4)", "clip(x, None, 0.35)", "where(B, X, c)", "take(X, [2, 0, 2], axis=1)", "take_along_axis(X, [[2, 0], [1, 1], [0, 0]], 1)",
	"X[:, i]", "X[:, [2, 0, 2]]", "X[i, 1:]", "t[:, i, 1]", "t[i, :, 1]", "t[i, :, i]", "t[:, i, i]", "t[:, [[0, 1], [2, 1]]]", "X[i, None]", "X[i[:, None], [0, 2]]",
	"x[p]", "x[x > 0]", "X[B]", "X[X > 0.2]", "X[:, p]", "X[p, 1:]", "t[B]", "t[:, B]", "x[[True, False, True]]", "x[x > 9]",
	"set_subtensor(X[:, 1], x)", "set_subtensor(X[:, [2, 0]], Y[:, :2])", "set_subtensor(X[:, [2, 0]], s)", "set_subtensor(X[[0, 1], 1:], Y[:2, 1:])", "set_subtensor(t[:, [0, 1], [2, 2]], X[:, :2])", "set_subtensor(t[[0, 1], :, [2, 2]], X[:2])", "set_subtensor(t[0, :, [1, 2]], Y[:2])",
	"set_subtensor(x[p], s)", "set_subtensor(x[x > 0], y[x > 0])", "set_subtensor(X[B], s)", "set_subtensor(X[:, p], c)", "set_subtensor(X[:, None, 1], c)",
	"inc_subtensor(X[:, 1], x)", "inc_subtensor(X[:, i], Y)", "inc_subtensor(X[:, [1, 1]], s)", "inc_subtensor(t[:, [0, 0], [2, 2]], X[:, :2])", "inc_subtensor(x[p], y[p])", "inc_subtensor(X[B], s)", "inc_subtensor(X[1:, i], y)",
	"atleast_1d(s)", "atleast_2d(x)", "dsplit(t, 3)[1]", "hsplit(X, 3)[0]", "vsplit(X, 3)[2]", "fliplr(X)", "flipud(X)", "matrix_transpose(t)", "tri(3)*Y",
}
