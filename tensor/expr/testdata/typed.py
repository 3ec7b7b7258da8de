"""usage: typed.py SEED N: writes N random typed expressions with what NumPy makes of them, as testdata/typed.txt has.

Lines: "! name: type = array" declares an input of the expressions below, up to the next one after an expression; then
an expression; "= array" is its value; "~ numbers" says how far elements may be off, if any may; "none" says that only
the expression as it is written has this value: an integer of 64 bits wraps around in it, or a float overflows.

NumPy computes each operation, with NumPy 2's promotion. bfloat16, which NumPy lacks, is computed in float32 and rounded
after each operation. How far a value may be off is measured: all results are moved by a few units in the last place.
"""
import sys, warnings
import numpy as np

warnings.simplefilter("ignore")
np.seterr(all="ignore")
if np.__version__ < "2":
    np._set_promotion_state("weak")
seed, count = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(seed)

INTS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = "float16 bfloat16 float32 float64".split()
ALL = ["bool"] + INTS + FLOATS
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
TINY = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324}
HUGE = {"float16": 65504.0, "bfloat16": 3.38e38, "float32": 3.4e38, "float64": 1.79e308}


class Skip(Exception):
    pass


def brain(x):
    """The bfloat16s nearest to float32s, as float32s."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), np.float32(np.nan), rounded).astype(np.float32)


class Value:
    """An array with the name of its type: a bfloat16 is a float32 in NumPy."""

    def __init__(self, a, t=None):
        self.a = np.asarray(a)
        self.t = t or self.a.dtype.name

    @property
    def shape(self):
        return self.a.shape


def promote(types):
    strong = [t for t in types if t not in ("int", "float")]
    out = strong[0]
    for t in strong[1:]:
        if t == out:
            continue
        if "bfloat16" in (t, out):
            other = out if t == "bfloat16" else t
            if other == "float16":
                out = "float32"
            elif other in FLOATS:
                out = other
            else:
                r = np.result_type(other, np.float16).name
                out = "bfloat16" if r == "float16" else r
        else:
            out = np.result_type(out, t).name
    if "float" in types and out not in FLOATS:
        out = "float64"
    return "int64" if out == "bool" and "int" in types else out


class Run:
    """One evaluation: with noise, unless scale is 0. wide notes what only the expression as written computes."""

    def __init__(self, scale):
        self.scale, self.wide = scale, False
        self.rng = np.random.default_rng(seed * 1000 + scale)

    def rounded(self, a, t, size=None, exact=False):
        """The result of an operation in a type, disturbed."""
        a = np.asarray(a)
        if t in FLOATS:
            v = a.astype(np.float64)
            big = np.abs(v)
            if np.any((big > HUGE[t] / 16) & (big < np.inf)) or np.any(np.isinf(v)):
                self.wide = True
            if self.scale and not exact:
                u = self.rng.integers(-2, 3, a.shape)
                v = v + (np.abs(v) if size is None else size) * EPS[t] * u + TINY[t] * u * (v != 0)
                a = np.where(np.isfinite(v), v, a).astype(a.dtype)
        if t == "bfloat16":
            a = brain(a)
        return Value(a, t)


def asin(v, t):
    """The array of a value, converted to a type before an operation."""
    if isinstance(v, (int, float)):
        return np.float32(v) if t == "bfloat16" else np.array(v, t) if t != "float32" else np.float32(v)
    if v.t == t:
        return v.a
    if t == "bfloat16":
        return brain(v.a.astype(np.float32))
    return v.a.astype(t)


def kind(v):
    return "int" if isinstance(v, int) else "float" if isinstance(v, float) else v.t


def same(x, y):
    return np.array_equal(np.asarray(x, np.float64), np.asarray(y, np.float64), equal_nan=True)


def arithmetic(f, g=None, wraps=True):
    """An operation in the promoted type. g computes exactly with Python's integers."""

    def run(r, *args):
        t = promote([kind(v) for v in args])
        xs = [asin(v, t) for v in args]
        out = f(*xs)
        exact = False
        if t in FLOATS:
            wider = np.float64 if t != "float64" else np.longdouble
            exact = np.array_equal(f(*[np.asarray(x, wider) for x in xs]), out.astype(wider), equal_nan=True) and f not in (np.floor_divide, np.remainder)
        elif wraps and t in ("int64", "uint64"):
            big = f(*[np.asarray(x, np.float64) for x in xs])
            if np.any(np.abs(big) >= 2.0**62) or np.any(big < 0) and t == "uint64":
                r.wide = True
        return r.rounded(out, t, exact=exact)

    return run


def function(f):
    """A function of floats."""

    def run(r, *args):
        t = promote([kind(v) for v in args])
        if t not in FLOATS:
            t = f(*[np.ones(1, t) for _ in args]).dtype.name
        xs = [asin(v, t) for v in args]
        return r.rounded(f(*xs), t, exact=f in (np.floor, np.ceil, np.trunc, np.rint, np.copysign))

    return run


def exactly(f, test=False):
    def run(r, *args):
        t = promote([kind(v) for v in args])
        xs = [asin(v, t) for v in args]
        return Value(f(*xs), "bool" if test else t)

    return run


def divide(r, x, y):
    t = promote([kind(x), kind(y)])
    t = t if t in FLOATS else "float64"
    return r.rounded(np.true_divide(asin(x, t), asin(y, t)), t)


def cast(r, x, t):
    if x.t == t:
        return x
    a = x.a
    if x.t in FLOATS and t in INTS:
        info = np.iinfo(t)
        with np.errstate(all="ignore"):
            v = a.astype(np.float64)
            if not np.all(np.isfinite(v)) or np.any(np.trunc(v) < info.min) or np.any(np.trunc(v) >= float(info.max)):
                raise Skip
    if t == "bfloat16":
        return r.rounded(brain(a.astype(np.float32)), t, exact=True)
    return r.rounded(a.astype(t), t, exact=True)


def reduce(name):
    def run(r, x, axis):
        a, t = x.a, x.t
        n = a.size if axis is None else a.shape[axis]
        if name in ("max", "min", "any", "all"):
            return Value(getattr(np, name)(a, axis=axis), "bool" if name in ("any", "all") else t)
        if name in ("argmax", "argmin"):
            return Value(getattr(np, name)(a, axis=axis), "int64")
        b = a.astype(np.float32) if t == "float16" else a
        if t in FLOATS:
            if name == "mean":
                size = np.sum(np.abs(b.astype(np.float64)), axis=axis)
                out = np.mean(b.astype(np.float64), axis=axis)
            else:
                size = np.sum(np.abs(b.astype(np.float64)), axis=axis) if name == "sum" else None
                out = getattr(np, name)(b.astype(np.float64), axis=axis)
            out = out.astype(np.float32) if t == "bfloat16" else out.astype(t)
            return r.rounded(out, t, size=size)
        out = getattr(np, name)(a, axis=axis)
        if name == "mean":
            return r.rounded(out, "float64")
        exact = getattr(np, name)(a.astype(np.float64), axis=axis)
        if np.any(np.abs(exact) >= 2.0**62):
            r.wide = True
        return Value(out)

    return run


def cumsum(r, x):
    if x.t in FLOATS:
        b = x.a.astype(np.float64)
        return r.rounded(np.cumsum(b, axis=-1).astype(x.a.dtype), x.t, size=np.cumsum(np.abs(b), axis=-1))
    if np.any(np.abs(np.cumsum(x.a.astype(np.float64), axis=-1)) >= 2.0**62):
        r.wide = True
    return Value(np.cumsum(x.a, axis=-1))


def where(r, c, x, y):
    t = promote([kind(x), kind(y)])
    return Value(np.where(c.a, asin(x, t), asin(y, t)), t)


def dot(r, x, y):
    t = promote([x.t, y.t])
    a, b = asin(x, t), asin(y, t)
    if t in FLOATS:
        a, b = a.astype(np.float64), b.astype(np.float64)
        out = (a @ b).astype(np.float32 if t == "bfloat16" else t)
        return r.rounded(out, t, size=np.abs(a) @ np.abs(b))
    if np.any(np.abs(a.astype(np.float64) @ b.astype(np.float64)) >= 2.0**62):
        r.wide = True
    return Value(np.matmul(a, b), t)


def integral(f):
    """An operation on the bits of integers or bools."""

    def run(r, *args):
        t = promote([kind(v) for v in args])
        if t in FLOATS:
            raise Skip
        return Value(f(*[asin(v, t) for v in args]), t)

    return run


def numeric(types):
    return [t for t in types if t != "bool"]


def boolsum(f, g):
    """+ and * of bools are "or" and "and"."""

    def run(r, x, y):
        if kind(x) == kind(y) == "bool":
            return Value(g(x.a, y.a), "bool")
        return arithmetic(f)(r, x, y)

    return run


def nobool(f):
    def run(r, *args):
        if all(kind(v) in ("bool", "int") for v in args):
            raise Skip
        return f(r, *args)

    return run


def compare(f):
    def run(r, x, y):
        if {kind(x), kind(y)} >= {"uint64"} and any(kind(v).startswith("int") for v in (x, y)):
            raise Skip  # of which NumPy 2 compares the integers, and older ones floats
        return exactly(f, True)(r, x, y)

    return run


def copysign(r, x, y):
    if np.any(np.isnan(asin(y, promote([kind(x), kind(y)])).astype(np.float64))):
        raise Skip  # a NaN has no sign that means anything
    return function(np.copysign)(r, x, y)


def logaddexp(r, x, y):
    v, t = function(np.logaddexp)(Run(0), x, y), promote([kind(x), kind(y)])
    size = np.maximum(np.abs(asin(x, t).astype(np.float64)), np.abs(asin(y, t).astype(np.float64)))
    return r.rounded(v.a, v.t, size=np.nan_to_num(np.maximum(size, np.abs(v.a.astype(np.float64))), posinf=0.0))


def power(r, x, n):
    t = kind(x)
    if t == "bool":
        raise Skip
    if t in FLOATS:
        return r.rounded(np.power(x.a, asin(float(n), t)), t)
    return arithmetic(np.power)(r, x, n)


def square(r, x):
    if x.t == "bool":
        raise Skip
    return arithmetic(lambda a: a * a)(r, x)


BINARY = {
    "({} + {})": boolsum(np.add, np.logical_or), "({} * {})": boolsum(np.multiply, np.logical_and), "({} - {})": nobool(arithmetic(np.subtract)),
    "({} / {})": divide, "({} // {})": nobool(arithmetic(np.floor_divide)), "({} % {})": nobool(arithmetic(np.remainder)),
    "maximum({}, {})": exactly(np.maximum), "minimum({}, {})": exactly(np.minimum),
    "({} < {})": compare(np.less), "({} <= {})": compare(np.less_equal), "({} > {})": compare(np.greater), "({} >= {})": compare(np.greater_equal),
    "eq({}, {})": compare(np.equal), "neq({}, {})": compare(np.not_equal),
    "({} & {})": integral(np.bitwise_and), "({} | {})": integral(np.bitwise_or), "({} ^ {})": integral(np.bitwise_xor),
    "arctan2({}, {})": function(np.arctan2), "hypot({}, {})": function(np.hypot), "logaddexp({}, {})": logaddexp, "copysign({}, {})": copysign,
}
UNARY = {
    "-{}": nobool(arithmetic(np.negative)), "abs({})": nobool(exactly(np.abs)), "sgn({})": nobool(exactly(np.sign)), "~{}": integral(np.invert), "sqr({})": square,
    "sqrt({})": function(np.sqrt), "exp({})": function(np.exp), "log({})": function(np.log), "log1p({})": function(np.log1p), "expm1({})": function(np.expm1),
    "sin({})": function(np.sin), "cos({})": function(np.cos), "tanh({})": function(np.tanh), "arctan({})": function(np.arctan), "exp2({})": function(np.exp2),
    "floor({})": function(np.floor), "ceil({})": function(np.ceil), "trunc({})": function(np.trunc), "rint({})": function(np.rint),
    "isnan({})": exactly(np.isnan, True), "isinf({})": exactly(np.isinf, True), "cumsum({}, -1)": cumsum,
    "{}[::-1]": lambda r, x: Value(x.a[::-1], x.t), "sort({})": lambda r, x: Value(np.sort(x.a, axis=-1), x.t),
    "argsort({}, kind='stable')": lambda r, x: Value(np.argsort(x.a, axis=-1, kind="stable")),
}
WEIGHTS = ["binary"] * 9 + ["unary"] * 5 + ["cast"] * 3 + ["where", "reduce", "reduce", "dot", "power", "clip", "set", "join", "twice"]


def pick(items):
    return items[rng.integers(len(items))]


class Node:
    """A piece of an expression: its text, and how it is evaluated."""

    def __init__(self, text, f, *args):
        self.text, self.f, self.args = text, f, args

    def run(self, r, memo):
        if id(self) not in memo:
            memo[id(self)] = self.f(r, *[a.run(r, memo) if isinstance(a, Node) else a for a in self.args])
        return memo[id(self)]


def literal(r, like):
    if like.t in FLOATS or like.t == "bool" or rng.integers(4) == 0:
        return pick([0.5, 2.0, -1.5, 3.0, 0.25, 1.0])
    return int(pick([0, 1, 2, 3, 5, 7] + ([] if like.t.startswith("uint") else [-1, -3])))


def leaf(inputs, near=None):
    names = list(inputs)
    return inputs[pick(names)] if near is None else pick([inputs[n] for n in names if inputs[n].base.t == near] or [inputs[names[0]]])


def grow(inputs, depth):
    if depth == 0 or rng.integers(12) == 0:
        return leaf(inputs)
    what = pick(WEIGHTS)
    x = grow(inputs, depth - 1)
    r = Run(0)
    v = x.run(r, {})
    if what == "binary":
        text = pick(list(BINARY))
        if rng.integers(4) == 0:
            y = literal(r, v)
            return Node(text.format(x.text, y), BINARY[text], x, y)
        y = leaf(inputs, v.t) if rng.integers(3) == 0 else grow(inputs, rng.integers(depth))
        x, y = (x, y) if rng.integers(2) else (y, x)
        return Node(text.format(x.text, y.text), BINARY[text], x, y)
    if what == "unary":
        text = pick(list(UNARY))
        if v.a.ndim == 0 and ("[" in text or "sort" in text or "cumsum" in text):
            raise Skip
        inner = x.text if text[0] not in "-~{" or x.text[-1] in ")" and x.text[0] not in "-~" or x.text.isidentifier() else f"({x.text})"
        return Node(text.format(inner), UNARY[text], x)
    if what == "cast":
        t = pick(ALL)
        return Node(f"cast({x.text}, '{t}')", cast, x, t)
    if what == "where":
        c = grow(inputs, 1)
        if c.run(r, {}).t != "bool":
            c = Node(f"({c.text} > 0)", compare(np.greater), c, 0)
        y = grow(inputs, rng.integers(depth))
        return Node(f"switch({c.text}, {x.text}, {y.text})", where, c, x, y)
    if what == "reduce":
        name = pick("sum prod max min mean any all argmax argmin".split())
        axis = None if v.a.ndim == 0 or rng.integers(2) else int(rng.integers(v.a.ndim))
        if name in ("any", "all") and v.t in FLOATS or v.a.ndim == 0:
            raise Skip
        return Node(f"{name}({x.text}{'' if axis is None else f', axis={axis}'})", reduce(name), x, axis)
    if what == "dot":
        y = grow(inputs, 1)
        w = y.run(r, {})
        if v.a.ndim == 0 or w.a.ndim != 1 or v.shape[-1] != w.shape[0] or v.t == w.t == "bool":
            raise Skip
        return Node(f"dot({x.text}, {y.text})", dot, x, y)
    if what == "power":
        n = int(pick([0, 1, 2, 3]))
        return Node(f"({x.text}**{n})", power, x, n) if x.text[0] not in "-~" else Node(f"(({x.text})**{n})", power, x, n)
    if what == "clip":
        lo, hi = (0, 3) if v.t in INTS else (-0.5, 1.5)
        if v.t == "bool":
            raise Skip
        clip = lambda r, a, lo, hi: exactly(np.minimum)(r, exactly(np.maximum)(r, a, lo), hi)
        return Node(f"clip({x.text}, {lo}, {hi})", clip, x, lo, hi)
    if what == "set":
        y = leaf(inputs)
        w = y.run(r, {})
        if v.a.ndim == 0 or w.a.ndim != 0 or promote([v.t, w.t]) != v.t or v.t == "bool":
            raise Skip
        name = pick(["set", "inc"])

        def change(r, a, b):
            c = a.a.copy()
            if name == "set":
                c[1:] = asin(b, a.t)
                return Value(c, a.t)
            one = boolsum(np.add, np.logical_or)(r, Value(a.a[1:], a.t), Value(asin(b, a.t), a.t))
            c[1:] = one.a
            return Value(c, a.t)

        return Node(f"{name}_subtensor({wrap(x)}[1:], {y.text})", change, x, y)
    if what == "join":
        y = grow(inputs, 1)
        w = y.run(r, {})
        if v.a.ndim != 1 or w.a.ndim != 1:
            raise Skip

        def join(r, a, b):
            t = promote([a.t, b.t])
            return Value(np.concatenate([asin(a, t), asin(b, t)])[1:5], t)

        return Node(f"concatenate([{x.text}, {y.text}])[1:5]", join, x, y)
    text = pick(["({} + {})", "({} - {})", "({} * {})", "({} / {})", "maximum({}, {})", "({} ^ {})"])
    return Node(text.format(x.text, x.text), BINARY[text], x, x)


def wrap(x):
    return x.text if x.text.isidentifier() or x.text[0] not in "-~" and x.text[-1] == ")" else f"({x.text})"


def element(t, wild):
    if t == "bool":
        return bool(rng.integers(2))
    if t in INTS:
        info = np.iinfo(t)
        if wild and rng.integers(3) == 0:
            return int(pick([info.max, info.min, info.max - 1, info.max // 2 + 1, 0]))
        return int(rng.integers(0 if t[0] == "u" else -9, 10))
    if wild and rng.integers(4) == 0:
        return pick([0.0, -0.0, np.nan, np.inf, -np.inf, HUGE[t] / 2, 1e-7, 1.0])
    return pick([1.0, 2.0, -1.0, 0.5, -3.0, 1.5, 0.1, -0.7, 3.3, 10.25])


def inputs_of():
    shapes = {"scalar": (), "vector": (4,), "matrix": (3, 4), "col": (3, 1)}
    wild = rng.integers(3) == 0
    inputs = {}
    for k in range(8):
        t, name = pick(ALL), pick(["vector", "matrix", "vector", "matrix", "col", "scalar"])
        list = [element(t, wild) for _ in range(int(np.prod(shapes[name])))]
        a = brain(np.array(list, np.float32)) if t == "bfloat16" else np.array(list, t)
        v = Value(a.reshape(shapes[name]), t)
        node = Node("xyzuvwpq"[k], lambda r, v: v, v)
        node.base, node.kind = v, name
        inputs[node.text] = node
    return inputs


def show(v):
    if v.t in FLOATS:
        return f"{v.t}[{', '.join(map(str, v.shape))}] " + " ".join("nan" if e != e else repr(float(e)) for e in v.a.ravel())
    return f"{v.t}[{', '.join(map(str, v.shape))}] " + " ".join(str(int(e)) for e in v.a.ravel())


def tolerances(node, want):
    """How far elements may be off; None if rounding decides about more than that."""
    low, high = want.a.astype(np.float64), want.a.astype(np.float64)
    wide = False
    for k in range(1, 9):
        r = Run(k)
        v = node.run(r, {})
        wide = wide or r.wide
        if v.t != want.t or v.shape != want.shape:
            return None, wide
        if want.t not in FLOATS:
            if not np.array_equal(v.a, want.a):
                return None, wide
            continue
        a = v.a.astype(np.float64)
        if not np.array_equal(np.isfinite(a), np.isfinite(low)) or not np.array_equal(np.isnan(a), np.isnan(low)) or np.any(np.isinf(a) & (a != low)):
            return None, wide
        low, high = np.minimum(low, a), np.maximum(high, a)
    if want.t not in FLOATS:
        return np.zeros(want.shape), wide
    width = np.nan_to_num(high - low, nan=0.0, posinf=0.0, neginf=0.0)
    ulp = np.nan_to_num(np.abs(low), nan=0.0, posinf=0.0, neginf=0.0) * EPS[want.t] + TINY[want.t]
    return np.where(width > 0, 4 * width + 4 * ulp, 0), wide


made = 0
print(__doc__.split("\n\n")[1].replace("Lines:", "# Lines:").replace("\n", "\n# "))
while made < count:
    inputs = inputs_of()
    printed = False
    for _ in range(40):
        if made >= count:
            break
        try:
            node = grow(inputs, int(rng.integers(1, 5)))
            if len(node.text) < 2 or len(node.text) > 160:
                continue
            base = Run(0)
            want = node.run(base, {})
            tol, wide = tolerances(node, want)
        except (Skip, ValueError, IndexError, OverflowError):  # shapes that don't broadcast, axes that aren't there
            continue
        if tol is None or want.a.size == 0:
            continue
        if not printed:
            printed = True
            for name, v in inputs.items():
                print(f"! {name}: {v.base.t} {v.kind} = {show(v.base)}")
        print(node.text)
        print("= " + show(want))
        if np.any(tol > 0):
            print("~ " + " ".join(f"{t:.2g}" for t in tol.ravel()))
        if wide or base.wide:
            print("none")
        made += 1
