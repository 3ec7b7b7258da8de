"""Tests of the wheel, as it is installed, in a folder with model.onnx."""

import os
import pathlib
import subprocess
import sys
import unittest

import nnopt

SET = ["--set", "input_ids=1,4,2", "--shape", "input_ids=1x3", "--set", "attention_mask=1,1,1", "--shape", "attention_mask=1x3"]


class Proto:
    """What simplify needs of an onnx.ModelProto."""

    def __init__(self, data):
        self.data = data

    def SerializeToString(self):
        return self.data

    @classmethod
    def FromString(cls, data):
        return cls(data)


class Package(unittest.TestCase):
    def call(self, *args):
        return subprocess.run([sys.executable, "-m", "nnopt", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_commands(self):
        self.assertEqual(self.call("opt", "model.onnx", "small.onnx").returncode, 0)
        self.assertIn("0.707", self.call("eval", *SET, "small.onnx").stdout)
        self.assertIn("embedding", nnopt.run("info", "small.onnx", stdout=subprocess.PIPE, text=True).stdout)
        script = os.path.join(os.path.dirname(sys.executable), "nnopt")
        self.assertEqual(subprocess.run([script, "version"], stdout=subprocess.DEVNULL).returncode, 0)
        wrong = self.call("opt", "none.onnx", "x.onnx")
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("none.onnx", wrong.stderr)

    def test_simplify(self):
        data = pathlib.Path("model.onnx").read_bytes()
        shapes = {"input_ids": [1, 3], "attention_mask": [1, 3]}
        for model, kind in ((data, bytes), ("model.onnx", bytes), (pathlib.Path("model.onnx"), bytes), (Proto(data), Proto)):
            for check in (True, False):
                small, same = nnopt.simplify(model, input_shapes=shapes, check=check)
                self.assertIsInstance(small, kind)
                self.assertIs(same, True)
                pathlib.Path("small.onnx").write_bytes(small if kind is bytes else small.data)
                self.assertIn("0.707", self.call("eval", *SET, "small.onnx").stdout)

    def test_errors(self):
        for args in ((b"no model",), ("none.onnx",)):
            with self.assertRaises(RuntimeError):
                nnopt.simplify(*args)
        with self.assertRaisesRegex(RuntimeError, "no_such_pass|no pass"):
            nnopt.simplify("model.onnx", query="+no_such_pass")


unittest.main()
