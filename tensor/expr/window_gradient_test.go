package expr_test

// windowGradients are expressions of what moves a window, of what resizes, and of what selects elements
// as ONNX does, whose gradients are compared with finite differences.
var windowGradients = []string{
	"conv(t, u)", "conv(t, u, pads=1)", "conv(t, u, x, pads=[2, 0], strides=2)", "conv(t, u[:, :, :2], dilations=2)", "conv(t, u[:, :1], groups=3, pads=1)", "conv(t, u[:, :, :1])",
	"conv(t[None], u[:, :, None], pads=[1, 0, 1, 2], strides=[1, 2])", "conv(t[None, :, None], u[:, :, None, None], pads=1)", "conv(t[None, None], X[None, None, None], pads=[0, 1, 2, 1, 0, 1])",
	"conv_transpose(t, u)", "conv_transpose(t, u, pads=1, strides=2)", "conv_transpose(t, u, x, strides=3, output_padding=1)", "conv_transpose(t, u[:, :1], groups=3, dilations=2)",
	"MaxPoolLast{2}(t.transpose(0, 2, 1))", "AveragePoolLast{2}{strides=2}{pads=1,1}(t.transpose(0, 2, 1))", "SumPoolLast{2}{pads=0,1}(t.transpose(0, 2, 1))",
	"ConvLast{1}(t.transpose(0, 2, 1), u.transpose(2, 1, 0))", "ConvLast{1}{strides=2}{pads=1,0}{groups=3}(t.transpose(0, 2, 1), u[:, :1].transpose(2, 1, 0))",
	"ConvTranspose{1}{pads=1,1}(t, u, 3)", "ConvWeights{1}{pads=1,1}(t, u, 3)",
	"grad(sum(conv(t, u, pads=1)**2), t)", "grad(sum(conv(t, u, pads=1)**2), u)", "grad(sum(conv_transpose(t, u, strides=2)**2), u)", "grad(sum(conv_transpose(t, u, strides=2)**2), t)",
	"max_pool(t, 2)", "max_pool(t, 3, pads=1, strides=2)", "max_pool(t[None], [2, 3], pads=[0, 1, 1, 1])", "max_pool(t, 2, strides=2, ceil_mode=True)", "MaxPool{2}{strides=2}(t)",
	"average_pool(t, 2)", "average_pool(t, 3, pads=1, strides=2)", "average_pool(t[None], 2, pads=1, count_include_pad=True)", "average_pool(t, 2, dilations=2)", "AveragePool{2}{ceil}(t)",
	"sum_pool(t, 2)", "SumPool{2}{pads=0,1}(t)", "lp_pool(t, 2)", "lp_pool(t, 3, p=3)", "lp_pool(t, 2, p=1)", "AveragePoolGrad{1}(t, 3)", "AveragePoolGrad{2}{strides=2}{pads=1,1}(t[:, :, :2], 3)", "SumPoolGrad{3}{pads=1,1}(t, 3)",
	"grad(sum(max_pool(t, 2, pads=1)**2), t)", "grad(sum(average_pool(t, 2, pads=1)**2), t)", "grad(sum(sum_pool(t, 2)**2), t)",
	"resize(t, scales=[1, 1, 2])", "resize(t, scales=[1, 0.7, 1.7], mode='linear')", "resize(t, sizes=[3, 5, 2], mode='linear', coordinates='align_corners')", "resize(t, sizes=[3, 2, 6], coordinates='asymmetric', nearest_mode='ceil')", "resize(X, sizes=[1, 4], mode='linear', coordinates='pytorch_half_pixel')",
	"gather_elements(X, [[0, 2], [1, 1]], 1)", "gather_elements(t, [[[0, -1]]], axis=2)", "gather_nd(X, [[0, 1], [2, 2]])", "gather_nd(t, [[1], [1]])",
	"scatter_elements(X, [[0, 2], [1, 0]], Y[:2, :2], 1)", "scatter_elements(X, [[0, 2], [1, 1]], Y[:2, :2], reduction='add')", "scatter_nd(X, [[0, 1], [2, 2]], y[:2])", "scatter_nd(t, [[1], [1]], u[:2], reduction='add')",
	"topk(x, 2)[0]", "topk(X, 2, 0)[0]", "topk(t, 1, axis=1, largest=False)[0]",
}
