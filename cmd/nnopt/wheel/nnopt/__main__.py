"""The command nnopt: python -m nnopt opt --output small.onnx model.onnx"""

import os
import sys

from . import program, run


def main():
    args = sys.argv[1:]
    # nnopt opt IN OUT, as onnxsim has it
    if len(args) == 3 and args[0] == "opt" and not any(a.startswith("-") for a in args):
        args = ["opt", "--output=" + args[2], args[1]]
    if os.name == "nt":
        sys.exit(run(*args).returncode)
    os.execv(program(), ["nnopt", *args])


if __name__ == "__main__":
    main()
