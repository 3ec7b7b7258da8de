"""The chains and the training step of exec/function_bench_test.go with NumPy: milliseconds of the quickest of many calls."""
import sys
import time

import numpy as np


def best(f, seconds=2.0):
    f()
    times, until = [], time.perf_counter() + seconds
    while time.perf_counter() < until or len(times) < 5:
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def chains(n=10**7):
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0.5, 1.5, n), rng.uniform(0.5, 1.5, n)
    print("functions  %6.1f ms" % best(lambda: np.exp(-np.square(x * y + 0.5)) * np.sqrt(np.abs(x)) + np.tanh(y)))
    print("arithmetic %6.1f ms" % best(lambda: ((x * y + x) * (y - 0.5) * x + y) * (x - y) * y - x))


def training(dtype, batch=128, sizes=(784, 1024, 1024, 10), rate=0.1):
    rng = np.random.default_rng(1)
    weights = [rng.uniform(-0.05, 0.05, s).astype(dtype) for s in zip(sizes, sizes[1:])]
    biases = [np.zeros(n, dtype) for n in sizes[1:]]
    x, y = rng.uniform(0, 1, (batch, sizes[0])).astype(dtype), np.arange(batch) % sizes[-1]
    rows = np.arange(batch)
    rate = dtype(rate)

    def step():
        h = [x]
        for w, b in zip(weights[:-1], biases):
            z = h[-1] @ w
            z += b
            h.append(np.tanh(z, out=z))
        z = h[-1] @ weights[-1]
        z += biases[-1]
        z -= z.max(axis=1, keepdims=True)
        p = np.exp(z, out=z)
        p /= p.sum(axis=1, keepdims=True)
        cost = -np.log(p[rows, y]).mean()
        d = p
        d[rows, y] -= 1
        d /= dtype(batch)
        for i in reversed(range(len(weights))):
            dw, db = h[i].T @ d, d.sum(axis=0)
            if i > 0:
                d = d @ weights[i].T
                d *= 1 - np.square(h[i])
            dw *= rate
            weights[i] -= dw
            biases[i] -= rate * db
        return cost

    print("training %s %6.2f ms" % (np.dtype(dtype).name, best(step)))


if __name__ == "__main__":
    what = sys.argv[1:] or ["chains", "training"]
    if "chains" in what:
        chains()
    if "training" in what:
        training(np.float32)
        training(np.float64)
