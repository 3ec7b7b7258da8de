"""Makes ONNX models smaller, by the program nnopt, which is part of this package.

    model, check = nnopt.simplify("model.onnx")
"""

import os
import pathlib
import subprocess
import tempfile

__all__ = ["program", "run", "simplify"]


def program():
    """Returns the path of the program."""
    name = "nnopt.exe" if os.name == "nt" else "nnopt"
    return str(pathlib.Path(__file__).parent / "bin" / name)


def run(*args, **options):
    """Runs the program with arguments, as subprocess.run does."""
    return subprocess.run([program(), *map(str, args)], **options)


def simplify(model, *, query=None, input_shapes=None, check=True):
    """Makes a model smaller and faster. Returns it with whether it computes what it did, as onnxsim does.

    model is a path, bytes, or an onnx.ModelProto; what is returned is bytes for the first two and an onnx.ModelProto for
    the last. query selects passes, as "nnopt opt --query" does. input_shapes fixes sizes of inputs, {"x": [1, 3, 224, 224]}.
    Both models are run on random inputs unless check is false. RuntimeError says what is wrong with a model.
    """
    args = ["opt"]
    if query:
        args.append("--query=" + query)
    for name, shape in (input_shapes or {}).items():
        args.append("--shape=%s=%s" % (name, "x".join(map(str, shape))))
    with tempfile.TemporaryDirectory() as folder:
        source, target = model, os.path.join(folder, "out.onnx")
        proto = hasattr(model, "SerializeToString")
        if proto or isinstance(model, (bytes, bytearray, memoryview)):
            source = os.path.join(folder, "in.onnx")
            pathlib.Path(source).write_bytes(model.SerializeToString() if proto else model)
        tried = None
        for verify in (True, False) if check else (False,):
            done = run(*args, "--verify=%s" % str(verify).lower(), "--output=" + target, source,
                       cwd=folder if source is not model else None, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            tried = tried or done
            if done.returncode == 0:
                result = pathlib.Path(target).read_bytes()
                return (type(model).FromString(result) if proto else result), verify or not check
        raise RuntimeError(tried.stderr.strip())
