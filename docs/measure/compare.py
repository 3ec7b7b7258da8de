"""usage: compare.py FOLDER CASE...: ONNX models by Go packages, in turns, each in a process of its own on one core.

A case is a folder with model.onnx and test_data_set_0, as ONNX's own tests have. The programs of testdata/compare are built in FOLDER
first. A row has, for each program, the median time of a run, the time to open the model and run it once, both in milliseconds and the
least of three turns, and the peak of memory in MB; or why it has no right numbers: outputs may differ by 0.005 of their norm. Needs a C
compiler, python3-onnx, python3-numpy, and ORT=FILE, ONNX Runtime's shared library, such as the one in onnxruntime-node of npm.
"""
import glob, json, os, subprocess, sys
import numpy as np, onnx
from onnx import numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = {"nnopt": "", "onnxruntime": "github.com/yalue/onnxruntime_go@v1.27.0", "gomlx": "github.com/gomlx/onnx-gomlx@v0.3.4",
            "onnxgo": "github.com/owulveryck/onnx-go@v0.5.0", "gonnx": "github.com/advancedclimatesystems/gonnx@v1.1.0"}


def build(folder):
    for name, package in PROGRAMS.items():
        d = f"{folder}/{name}"
        os.makedirs(d, exist_ok=True)
        for source in "main", name:
            with open(f"{HERE}/testdata/compare/{source}.go") as r, open(f"{d}/{source}.go", "w") as w:
                w.write(r.read())
        def go(*a): subprocess.run(["go", *a], cwd=d, check=True, env={**os.environ, "CGO_ENABLED": str(int(name == "onnxruntime"))})
        if not os.path.exists(f"{d}/go.mod"):
            go("mod", "init", "compare")
            if package:
                go("get", package)
            else:
                go("mod", "edit", "-require=github.com/nnopt/nnopt@v0.0.0", f"-replace=github.com/nnopt/nnopt={HERE}/../..")
        go("mod", "tidy")
        go("build", "-trimpath", "-ldflags=-s", "-o=program", ".")
        lines = sum(1 for _ in open(f"{d}/{name}.go"))
        print(f"{name}: {os.path.getsize(d + '/program') / 1e6:.1f} MB, {lines} lines beside the {sum(1 for _ in open(d + '/main.go'))} of all")


def load(case, kind):
    files = sorted(glob.glob(f"{case}/test_data_set_0/{kind}_*.pb"), key=lambda f: int(f.rsplit("_", 1)[1][:-3]))
    return [(t.name, numpy_helper.to_array(t)) for t in map(onnx.load_tensor, files)]


def right(outputs, folder):
    for i, (_, want) in enumerate(outputs):
        got = np.fromfile(f"{folder}/{i}", want.dtype)
        if got.size != want.size or not np.linalg.norm(got.astype(float) - want.ravel()) <= 5e-3 * np.linalg.norm(want.astype(float)):
            return False
    return True


def run(program, case, folder, times):
    for f in glob.glob(f"{folder}/out/*"):
        os.remove(f)
    command = ["taskset", "-c", "1", f"{folder}/{program}/program", f"{case}/model.onnx", f"{folder}/inputs.json", f"{folder}/out", str(times)]
    try:
        r = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return {"error": "it takes more than two minutes"}
    return json.loads(r.stdout.splitlines()[-1]) if r.stdout.strip() else {"error": r.stderr[-300:]}


folder, cases = os.path.abspath(sys.argv[1]), sys.argv[2:]
os.makedirs(f"{folder}/out", exist_ok=True)
build(folder)
for case in cases:
    inputs, outputs = load(case, "input"), load(case, "output")
    said = []
    for i, (name, a) in enumerate(inputs):
        np.ascontiguousarray(a).tofile(f"{folder}/in{i}")
        said.append({"Name": name, "Dtype": str(a.dtype), "File": f"{folder}/in{i}", "Dims": list(a.shape)})
    with open(f"{folder}/inputs.json", "w") as f:
        json.dump(said, f)
    best, failed = {}, {}
    for times in 3, 20, 20:
        for p in PROGRAMS:
            if p in failed:
                continue
            a = run(p, case, folder, times)
            if "error" not in a and not right(outputs, f"{folder}/out"):
                a = {"error": "other numbers"}
            if "error" in a:
                failed[p] = a["error"]
            else:
                best[p] = {k: min(v, best.get(p, a)[k]) for k, v in a.items()}
    print(" | ".join([os.path.basename(case)] + ["–" if p in failed else "{run:.3g} / {first:.3g} / {MB}".format(**best[p]) for p in PROGRAMS]), flush=True)
    for p, e in failed.items():
        print(f"    {p}: {' '.join(e.split())[:170]}", flush=True)
