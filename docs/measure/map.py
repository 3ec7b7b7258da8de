"""usage: map.py NNOPT [PATTERN]: a map of speed, from models of one node of shapes as networks have them.

Each line of the table has the best time of nnopt and of ONNX Runtime, in microseconds, in turns on one thread, and their
ratio; the worst come first. A cell is measured if its name matches PATTERN, a regular expression. Inputs and results have the
channels second, so what it takes to move them is in a cell. ONNX Runtime needs some sixty runs to become quick, if the machine is
busy, and so it gets 200. TURNS is the number of turns. Needs python3-onnx (Debian), and onnxruntime-node as ort.js does.
"""
import json, math, os, re, subprocess, sys, tempfile
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

HERE = os.path.dirname(os.path.abspath(__file__))
RANDOM = np.random.RandomState(1)


def model(op, shapes, weights=(), **attributes):
    """A node of inputs of these shapes, and of weights: arrays, shapes of random ones, or None for inputs that are left out."""
    first, *then = op.split("+")
    inputs = [f"x{i}" for i in range(len(shapes))]
    constants, names = [], []
    for i, w in enumerate(weights):
        names.append("" if w is None else f"w{i}")
        if w is not None:
            if not isinstance(w, np.ndarray):
                w = (RANDOM.randn(*w) / math.sqrt(max(1, np.prod(w[1:])))).astype(np.float32)
            constants.append(numpy_helper.from_array(w, names[-1]))
    made = [helper.make_node(first, inputs + names, ["y0"], **attributes)]
    values = inputs[:1] + ["y0"]
    for n in then:  # of the result, or for Mul, of the result and what it was computed from
        made.append(helper.make_node(n, values[:-3:-1] if n == "Mul" else values[-1:], [f"y{len(made)}"]))
        values.append(f"y{len(made) - 1}")
    graph = helper.make_graph(made, "map", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip(inputs, shapes)],
                              [helper.make_tensor_value_info(f"y{len(made) - 1}", TensorProto.FLOAT, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def conv(c, m, size, k=3, stride=1, groups=1, dilation=1, batch=1, op="Conv", then=""):
    dims = len(size)
    pads = [dilation * (k - 1) // 2] * dims * 2
    w = [m, c // groups] if op == "Conv" else [c, m // groups]
    return model(op + then, [[batch, c, *size]], [w + [k] * dims, [m]], kernel_shape=[k] * dims, strides=[stride] * dims,
                 dilations=[dilation] * dims, group=groups, pads=pads)


def integers(*values):
    return np.array(values, np.int64)


def floats(*values):
    return np.array(values, np.float32)


def cells():
    """Yields names and models."""
    for c, m, s, k, t in [(3, 32, 224, 3, 2), (3, 64, 224, 7, 2), (3, 24, 224, 3, 2), (1, 8, 64, 3, 1), (3, 16, 512, 3, 2), (3, 64, 112, 3, 1), (4, 32, 160, 5, 1),
                          (6, 12, 56, 3, 1), (24, 24, 56, 3, 1), (24, 58, 28, 1, 1), (58, 58, 28, 1, 1), (116, 116, 14, 1, 1), (232, 232, 7, 1, 1), (6, 24, 112, 1, 1),
                          (16, 16, 128, 3, 1), (32, 32, 80, 3, 1), (64, 64, 56, 3, 1), (64, 64, 160, 3, 1), (128, 128, 28, 3, 1), (256, 256, 14, 3, 1), (512, 512, 7, 3, 1), (48, 48, 7, 3, 1),
                          (64, 256, 56, 1, 1), (256, 64, 56, 1, 1), (1024, 512, 14, 1, 1), (2048, 512, 7, 1, 1), (128, 256, 28, 1, 2), (64, 128, 56, 3, 2),
                          (32, 32, 28, 5, 1), (64, 64, 20, 7, 1), (192, 64, 28, 1, 1), (96, 96, 7, 1, 1), (16, 1, 128, 1, 1), (64, 2, 80, 3, 1), (96, 24, 112, 1, 1)]:
        yield f"conv {k}x{k} {c}-{m} {s}" + (f" /{t}" if t > 1 else ""), conv(c, m, (s, s), k, t)
    yield "conv 3x3 64-64 28 batch 4", conv(64, 64, (28, 28), batch=4)
    for d, s in [(2, 28), (5, 40), (8, 28)]:
        yield f"conv 3x3 64-64 {s} dilation {d}", conv(64, 64, (s, s), dilation=d)
    for g, c, s in [(2, 24, 56), (4, 240, 28), (8, 480, 14), (32, 128, 56), (32, 256, 28), (3, 24, 56)]:
        yield f"conv 3x3 {c}-{c} {s} groups {g}", conv(c, c, (s, s), groups=g)
        yield f"conv 1x1 {c}-{c} {s} groups {g}", conv(c, c, (s, s), 1, groups=g)
    for c, s, k, t in [(3, 224, 3, 1), (6, 112, 3, 1), (24, 56, 3, 2), (32, 112, 3, 1), (58, 28, 3, 1), (96, 56, 3, 2), (116, 14, 3, 1), (232, 7, 3, 1), (144, 56, 3, 1),
                       (384, 14, 3, 1), (960, 7, 3, 1), (96, 28, 5, 1), (120, 28, 5, 1), (240, 14, 5, 2), (96, 14, 7, 1)]:
        yield f"depthwise {k}x{k} {c} {s}" + (f" /{t}" if t > 1 else ""), conv(c, c, (s, s), k, t, c)
    yield "depthwise 3x3 32-64 28, multiplier 2", conv(32, 64, (28, 28), groups=32)
    for c, m, s, k, d, g in [(64, 64, 400, 3, 1, 1), (80, 384, 300, 3, 1, 1), (256, 256, 100, 5, 2, 1), (1, 64, 4000, 9, 1, 1), (256, 256, 200, 31, 1, 256), (16, 16, 1000, 3, 4, 1)]:
        yield f"conv1d {k} {c}-{m} {s}" + (f" dilation {d}" if d > 1 else "") + (f" groups {g}" if g > 1 else ""), conv(c, m, (s,), k, 1, g, d)
    for c, m, s, k, t, g in [(64, 32, 28, 2, 2, 1), (128, 64, 28, 4, 2, 1), (32, 16, 80, 3, 2, 1), (64, 64, 28, 4, 2, 64), (24, 1, 160, 2, 2, 1)]:
        yield f"transposed {k}x{k} {c}-{m} {s} /{t}" + (f" groups {g}" if g > 1 else ""), conv(c, m, (s, s), k, t, g, op="ConvTranspose")
    yield "transposed 1d 8 64-32 200 /4", conv(64, 32, (200,), 8, 4, op="ConvTranspose")
    for then in ["Relu", "HardSwish", "Sigmoid+Mul"]:
        yield f"conv 1x1 32-32 56, {then}", conv(32, 32, (56, 56), 1, then="+" + then)
    for rows, k, n in [(1, 512, 512), (1, 2048, 1000), (8, 512, 512), (128, 384, 384), (128, 384, 1536), (128, 64, 30), (1000, 16, 16), (4, 256, 4096)]:
        yield f"product {rows}x{k}x{n}", model("MatMul", [[rows, k]], [[k, n]])
    yield "product 12 of 128x32x128", model("MatMul", [[12, 128, 32], [12, 32, 128]])
    yield "product 12 of 128x128x32", model("MatMul", [[12, 128, 128], [12, 128, 32]])
    for s in [[1, 1000], [12, 128, 128], [8, 512, 512], [4096, 8]]:
        yield f"softmax {s}", model("Softmax", [s], axis=-1)
    yield "softmax of channels [1, 19, 64, 64]", model("Softmax", [[1, 19, 64, 64]], axis=1)
    yield "layer norm [128, 384]", model("LayerNormalization", [[128, 384]], [[384], [384]], axis=-1)
    yield "layer norm [1500, 64]", model("LayerNormalization", [[1500, 64]], [[64], [64]], axis=-1)
    yield "instance norm [1, 64, 56, 56]", model("InstanceNormalization", [[1, 64, 56, 56]], [[64], [64]])
    yield "batch norm [1, 64, 56, 56]", model("BatchNormalization", [[1, 64, 56, 56]], [[64], [64], [64], np.ones(64, np.float32)])
    for op in ["Erf", "Tanh", "Sigmoid", "Exp", "HardSwish", "LeakyRelu", "Elu", "Sigmoid+Mul", "Softplus", "Sqrt", "HardSigmoid", "Relu"]:
        yield f"{op} [128, 1536]", model(op, [[128, 1536]])
    for s in [[1, 64, 56, 56], [1, 64, 20, 20]]:
        for mode, t in [("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners")]:
            yield f"resize {mode} {t} x2 {s}", model("Resize", [s], [None, floats(1, 1, 2, 2)], mode=mode, coordinate_transformation_mode=t, nearest_mode="floor")
    yield "resize cubic x2 [1, 3, 112, 112]", model("Resize", [[1, 3, 112, 112]], [None, floats(1, 1, 2, 2)], mode="cubic")
    for s, p in [([1, 64, 56, 56], [0, 2, 3, 1]), ([1, 56, 56, 64], [0, 3, 1, 2]), ([1, 224, 224, 3], [0, 3, 1, 2]), ([1, 128, 12, 32], [0, 2, 1, 3]), ([512, 512], [1, 0]), ([1, 2, 58, 28, 28], [0, 2, 1, 3, 4])]:
        yield f"transpose {s} {p}", model("Transpose", [s], perm=p)
    for shapes, axis in [([[1, 64, 56, 56]] * 2, 1), ([[1, 56, 56, 32]] * 2, 3), ([[128, 64]] * 3, 1), ([[1, 58, 28, 28]] * 2, 1)]:
        yield f"concat {shapes} {axis}", model("Concat", shapes, axis=axis)
    for s, k, t, p in [([1, 64, 112, 112], 3, 2, 1), ([1, 64, 112, 112], 2, 2, 0), ([1, 192, 28, 28], 3, 1, 1), ([1, 512, 14, 14], 5, 1, 2), ([1, 24, 112, 112], 3, 2, 1)]:
        yield f"max pool {k}x{k} /{t} {s}", model("MaxPool", [s], kernel_shape=[k, k], strides=[t, t], pads=[p] * 4)
        yield f"average pool {k}x{k} /{t} {s}", model("AveragePool", [s], kernel_shape=[k, k], strides=[t, t], pads=[p] * 4)
    yield "global average pool [1, 1024, 7, 7]", model("GlobalAveragePool", [[1, 1024, 7, 7]])
    yield "mean of rows [128, 384]", model("ReduceMean", [[128, 384]], axes=[-1])
    yield "sum of columns [128, 384]", model("ReduceSum", [[128, 384]], [integers(0)])
    yield "max of channels [1, 64, 56, 56]", model("ReduceMax", [[1, 64, 56, 56]], axes=[1])
    yield "add [1, 64, 56, 56] and a column", model("Add", [[1, 64, 56, 56]], [[64, 1, 1]])
    yield "add two of [1, 64, 56, 56]", model("Add", [[1, 64, 56, 56]] * 2)
    yield "multiply [1, 96, 28, 28] by channels", model("Mul", [[1, 96, 28, 28], [1, 96, 1, 1]])
    yield "pad [1, 32, 56, 56]", model("Pad", [[1, 32, 56, 56]], [integers(0, 0, 1, 1, 0, 0, 1, 1)])
    yield "slice [1, 64, 56, 56]", model("Slice", [[1, 64, 56, 56]], [integers(0), integers(32), integers(1)])
    for op, gates in [("LSTM", 4), ("GRU", 3)]:
        for t, c, h in [(1, 128, 128), (50, 64, 64), (100, 16, 32)]:
            yield f"{op} {t} steps {c}-{h}", model(op, [[t, 1, c]], [[1, gates * h, c], [1, gates * h, h], [1, gates * h * 2]], hidden_size=h)


def main():
    program, pattern = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name, m in cells():
            if not re.search(pattern, name):
                continue
            file = f"{folder}/model.onnx"
            m.graph.output[0].type.tensor_type.ClearField("shape")
            save(m, file)
            ours, theirs = math.inf, math.inf
            for _ in range(int(os.environ.get("TURNS", 3))):
                p = subprocess.run(["node", f"{HERE}/ort.js", file, "200"], capture_output=True, text=True)
                if "best" in p.stdout:
                    theirs = min(theirs, float(p.stdout.split("best ")[1].split()[0]) * 1e3)
                else:
                    print(name, p.stderr)
                p = subprocess.run([program, "bench", "onnx", "--json", "--threads", "1", "--model", file], capture_output=True, text=True)
                if p.stdout:
                    ours = min(ours, json.loads(p.stdout)["run_seconds"] * 1e6)
                else:
                    print(name, p.stderr)
            results.append((ours / theirs, name, ours, theirs))
            print(f"{results[-1][0]:6.2f} {ours:10.1f} {theirs:10.1f}  {name}", file=sys.stderr, flush=True)
    for ratio, name, ours, theirs in sorted(results, reverse=True):
        print(f"| {name} | {ours:.1f} | {theirs:.1f} | {ratio:.2f} |")
    known = [math.log(r[0]) for r in results if 0 < r[0] < math.inf]
    print(f"| geometric mean of {len(known)} | | | {math.exp(sum(known) / len(known)):.2f} |")


main()
