"""usage: ort.py MODEL REQUESTS#NAME OUT.onnx [int8]: the computation for a request as an ONNX model, to measure ONNX Runtime beside nnopt.

MODEL is an nnet3 model in text (nnopt copy --binary=false), REQUESTS as for "nnopt bench nnet3 --request". Feed-forward networks only. The model is
as lean as a converter could make it: only rows that the output needs, tensors of shape [sequences, times, columns], an i-vector multiplied once,
batch normalization as a scale and an offset. "int8" multiplies with dynamic quantization, weights by column. Needs python3-onnx (Debian).
"""
import json, re, sys
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


def read_model(path):
    """Returns the nodes, in order, and the components: for each a type, and fields that are text or arrays."""
    text = open(path).read()
    head, _, tail = text.partition("<NumComponents>")
    nodes = [(line.split()[0], dict(re.findall(r"([\w-]+)=(.*?)(?= [\w-]+=|$)", line.strip()))) for line in head.splitlines() if "name=" in line]
    components = {}
    for body in tail.split("<ComponentName>")[1:]:
        name, _, body = body.strip().partition(" ")
        fields = re.findall(r"<(\w+)>\s*([^<]*)", body)
        components[name] = (fields[0][0], {key: field(value.strip()) for key, value in fields[1:]})
    return nodes, components


def field(value):
    if not value.startswith("[") or "," in value:
        return value
    rows = [row for row in value.strip("[] \n").splitlines() if row.strip()]
    array = np.array(" ".join(rows).split(), np.float32)
    return array.reshape(len(rows), -1) if len(rows) > 1 else array


def parse(text):
    """Parses a descriptor into nested tuples: (function, arguments...), and strings."""
    tokens = re.findall(r"[^\s(),]+|[(),]", text)
    def term():
        name = tokens.pop(0)
        if not tokens or tokens[0] != "(":
            return name
        args = []
        while tokens.pop(0) != ")":
            args.append(term())
        return (name, *args)
    return term()


class Value:
    """A tensor with the rows of some times: [N, times, columns], or for images [N, filters, times, heights]."""
    def __init__(self, name, times, image=None):
        self.name, self.times, self.image = name, times, image


class Converter:
    def __init__(self, model, request, int8):
        self.nodes, self.components = read_model(model)
        self.request, self.int8 = request, int8
        self.ops, self.constants, self.values = [], [], {}

    # Which rows are needed.

    def reads(self, node, t):
        """Returns the rows (node, time) that a row of a node reads, and those of them that it can't do without."""
        kind, config = node
        offsets, required = [0], None
        if kind == "component-node":
            kind, fields = self.components[config["component"]]
            if kind == "TdnnComponent":
                offsets = [int(o) for o in np.atleast_1d(fields["TimeOffsets"])]
            elif kind == "TimeHeightConvolutionComponent":
                offsets, required = sorted({o for o, _ in conv_offsets(fields)}), [int(o) for o in fields["RequiredTimeOffsets"]]
            elif kind == "StatisticsPoolingComponent":
                offsets, required = range(-int(fields["LeftContext"]), int(fields["RightContext"]) + 1), []
        def rows(d, t):
            if isinstance(d, str):
                return [(d, t)]
            function, args = d[0], d[1:]
            if function == "Offset":
                return rows(args[0], t + int(args[1]))
            if function == "ReplaceIndex":
                return rows(args[0], int(args[2]))
            if function == "Round":
                return rows(args[0], t - t % int(args[1]))
            if function == "Scale":
                return rows(args[1], t)
            if function in ("Append", "Sum"):
                return [r for arg in args for r in rows(arg, t)]
            sys.exit("descriptor " + function + " is not supported")
        all_rows = lambda offsets: [r for o in offsets for r in rows(parse(config["input"]), t + o)]
        return all_rows(offsets), all_rows(offsets if required is None else required)

    def plan(self):
        """Returns the times of each node that the request needs and that can be computed."""
        have = {"input": set(range(*self.request["input_t"]))}
        if "ivector_t" in self.request:
            have["ivector"] = set(range(*self.request["ivector_t"]))
        for prune in (False, True):
            need = {name: set(range(*self.request["output_t"])) for name in self.request["outputs"]}
            for node in reversed(self.nodes):
                name = node[1]["name"]
                if node[0] != "input-node":
                    for t in need.get(name, ()):
                        for source, s in self.reads(node, t)[0]:
                            if not prune or s in have[source]:
                                need.setdefault(source, set()).add(s)
            for node in self.nodes:
                name = node[1]["name"]
                if node[0] != "input-node":
                    have[name] = {t for t in need.get(name, ()) if self.computable(node, t, have)}
        if any(have[name] != set(range(*self.request["output_t"])) for name in self.request["outputs"]):
            sys.exit("the output can't be computed from these inputs")
        return {name: sorted(times & have[name]) for name, times in need.items()}

    def computable(self, node, t, have):
        rows, required = self.reads(node, t)
        has = lambda row: row[1] in have[row[0]]
        return all(map(has, required)) and any(map(has, rows))

    # Operators.

    def op(self, kind, *inputs, **attributes):
        name = "v%d" % len(self.ops)
        self.ops.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, array):
        name = "c%d" % len(self.constants)
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def take(self, value, times):
        """Returns the rows of the given times."""
        name = self.rows(value)
        index = [value.times.index(t) for t in times]
        step = index[1] - index[0] if len(index) > 1 else 1
        if index == list(range(len(value.times))):
            return name
        if step > 0 and all(b - a == step for a, b in zip(index, index[1:])):
            ends = [self.constant(np.array([i], np.int64)) for i in (index[0], index[-1] + 1, 1, step)]
            return self.op("Slice", name, *ends)
        return self.op("Gather", name, self.constant(np.array(index, np.int64)), axis=1)

    def rows(self, value):
        """Returns a value as rows."""
        if value.image is None:
            return value.name
        columns = value.image[0] * value.image[1]
        by_time = self.op("Transpose", value.name, perm=[0, 2, 3, 1])
        return self.op("Reshape", by_time, self.constant(np.array([self.request["n"], len(value.times), columns], np.int64)))

    def parts(self, d, times):
        """Returns the parts that a descriptor appends, as (tensor, whether it is one row for all times)."""
        if isinstance(d, str):
            return [(self.take(self.values[d], times), False)]
        function, args = d[0], d[1:]
        if function == "Offset":
            return self.parts(args[0], [t + int(args[1]) for t in times])
        if function == "ReplaceIndex":
            return [(self.take(self.values[args[0]], [int(args[2])]), True)]
        if function == "Round":
            return self.parts(args[0], [t - t % int(args[1]) for t in times])
        if function == "Scale":
            return [(self.op("Mul", name, self.constant(np.float32(args[0]))), once) for name, once in self.parts(args[1], times)]
        if function == "Append":
            return [part for arg in args for part in self.parts(arg, times)]
        terms = [self.parts(arg, times) for arg in args]
        if any(len(term) > 1 for term in terms):
            sys.exit("a sum of appended parts is not supported")
        total = terms[0][0][0]
        for term in terms[1:]:
            total = self.op("Add", total, term[0][0])
        return [(total, False)]

    def join(self, parts, times):
        parts = [self.op("Expand", name, self.constant(np.array([1, len(times), 1], np.int64))) if once else name for name, once in parts]
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=2)

    def affine(self, parts, widths, times, weights, bias):
        """Multiplies appended parts by weights, out×in; what is one row for all times is multiplied once."""
        total, at = None, 0
        columns = {False: [], True: []}
        for (name, once), width in zip(parts, widths):
            columns[once].append((name, range(at, at + width)))
            at += width
        for once in (False, True):
            if columns[once]:
                x = self.join([(name, False) for name, _ in columns[once]], times)
                y = self.product(x, weights[:, [i for _, r in columns[once] for i in r]].T)
                if bias is not None:
                    y, bias = self.op("Add", y, self.constant(bias)), None
                total = y if total is None else self.op("Add", total, y)
        return total

    def product(self, x, weights):
        if not self.int8:
            return self.op("MatMul", x, self.constant(weights))
        scale = np.abs(weights).max(0) / 127
        name = "q%d" % len(self.ops)
        self.ops.append(helper.make_node("DynamicQuantizeLinear", [x], [name, name + "s", name + "z"]))
        codes = self.constant(np.rint(weights / np.where(scale > 0, scale, 1)).astype(np.int8))
        sums = self.op("MatMulInteger", name, codes, name + "z", self.constant(np.zeros((), np.int8)))
        return self.op("Mul", self.op("Cast", sums, to=TensorProto.FLOAT), self.op("Mul", name + "s", self.constant(scale.astype(np.float32))))

    def convolve(self, value, fields, times):
        offsets = conv_offsets(fields)
        steps, heights = sorted({o for o, _ in offsets}), sorted({h for _, h in offsets})
        filters_in, filters_out, height_in, height_out = (int(fields[k]) for k in ("NumFiltersIn", "NumFiltersOut", "HeightIn", "HeightOut"))
        stride, subsample = times[1] - times[0], int(fields["HeightSubsampleOut"])
        wanted = range(times[0] + steps[0], times[-1] + steps[-1] + 1)
        if len(offsets) != len(steps) * len(heights) or list(wanted[1:-1]) != [t for t in value.times if wanted[0] < t < wanted[-1]]:
            sys.exit("this convolution is not supported")
        image = value.name
        if value.image is None:
            shape = np.array([self.request["n"], len(value.times), height_in, filters_in], np.int64)
            image = self.op("Transpose", self.op("Reshape", value.name, self.constant(shape)), perm=[0, 3, 1, 2])
        weights = fields["LinearParams"].reshape(filters_out, len(steps), len(heights), filters_in).transpose(0, 3, 1, 2)
        bottom = (height_out - 1) * subsample + heights[-1] - (height_in - 1)
        pads = [value.times[0] - wanted[0], -heights[0], wanted[-1] - value.times[-1], bottom]
        y = self.op("Conv", image, self.constant(weights), self.constant(fields["BiasParams"]), strides=[stride, subsample], pads=pads)
        return Value(y, times, (height_out, filters_out))

    def component(self, config, times):
        kind, fields = self.components[config["component"]]
        d = parse(config["input"])
        value = self.values[d] if isinstance(d, str) else None
        if kind == "TimeHeightConvolutionComponent":
            return self.convolve(value, fields, times)
        if kind == "TdnnComponent":
            offsets = [int(o) for o in np.atleast_1d(fields["TimeOffsets"])]
            parts = [part for o in offsets for part in self.parts(d, [t + o for t in times])]
            weights, bias = fields["LinearParams"], fields["BiasParams"]
            return Value(self.affine(parts, [weights.shape[1] // len(parts)] * len(parts), times, weights, bias if bias.size else None), times)
        if kind == "StatisticsPoolingComponent":
            source = self.values[d]
            if len(times) > 1:
                sys.exit("statistics of several windows are not supported")
            square = self.op("ReduceMean", self.op("Mul", source.name, source.name), axes=[1])
            mean = self.op("ReduceMean", source.name, axes=[1])
            variance = self.op("Sub", square, self.op("Mul", mean, mean))
            floor = self.constant(np.float32(fields["VarianceFloor"]))
            return Value(self.op("Concat", mean, self.op("Sqrt", self.op("Max", variance, floor)), axis=2), times)
        same = value is not None and value.image and value.times == times
        image = value.image if same else None
        parts = None if image else self.parts(d, times)
        if "Affine" in kind or kind == "LinearComponent":
            weights = fields["LinearParams"] if "LinearParams" in fields else fields["Params"]
            parts = parts or [(self.rows(value), False)]
            widths = [self.width(name, weights.shape[1], len(parts)) for name in self.sources(d)]
            return Value(self.affine(parts, widths, times, weights, fields.get("BiasParams")), times)
        x = value.name if image else self.join(parts, times)
        if kind == "RectifiedLinearComponent":
            x = self.op("Relu", x)
        elif kind == "LogSoftmaxComponent":
            x = self.op("LogSoftmax", x, axis=2)
        elif kind == "BatchNormComponent":
            empty = float(fields["Count"]) == 0
            mean, variance = (0, np.ones(int(fields["BlockDim"]))) if empty else (fields["StatsMean"], fields["StatsVar"])
            scale = float(fields["TargetRms"]) / np.sqrt(variance + float(fields["Epsilon"]))
            offset = -mean * scale
            shape = (-1, 1, 1) if image else (-1,)
            repeat = 1 if image else int(fields["Dim"]) // len(scale)
            scale, offset = (np.tile(a, repeat).astype(np.float32).reshape(shape) for a in (scale, offset))
            x = self.op("Add", self.op("Mul", x, self.constant(scale)), self.constant(offset))
        elif kind not in ("NoOpComponent", "GeneralDropoutComponent", "DropoutComponent", "StatisticsExtractionComponent"):
            sys.exit(kind + " is not supported")
        return Value(x, times, image)

    def sources(self, d):
        """Returns the names of the nodes that the parts of a descriptor come from."""
        if isinstance(d, str):
            return [d]
        if d[0] == "Append":
            return [name for arg in d[1:] for name in self.sources(arg)]
        return self.sources(d[2] if d[0] == "Scale" else d[1])

    def width(self, node, total, parts):
        inputs = {config["name"]: int(config["dim"]) for kind, config in self.nodes if kind == "input-node"}
        return inputs.get(node, total // parts)

    def convert(self):
        need, inputs, outputs = self.plan(), [], []
        for kind, config in self.nodes:
            name = config["name"]
            if name not in need:
                continue
            if kind == "input-node":
                times = range(*self.request[name + "_t"])
                inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [self.request["n"], len(times), int(config["dim"])]))
                self.values[name] = Value(name, list(times))
            elif kind == "output-node":
                x = self.join(self.parts(parse(config["input"]), need[name]), need[name])
                self.ops.append(helper.make_node("Identity", [x], [name]))
                outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
            else:
                self.values[name] = self.component(config, need[name])
        graph = helper.make_graph(self.ops, "nnet3", inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 7
        return model


def conv_offsets(fields):
    return [tuple(int(i) for i in pair.split(",")) for pair in fields["Offsets"].strip("[] ").split()]


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    path, _, name = sys.argv[2].partition("#")
    request = json.load(open(path))
    request = request[name]["request"] if name else request
    save(Converter(sys.argv[1], request, "int8" in sys.argv[4:]).convert(), sys.argv[3])
