#!/bin/sh
# Installs a built wheel into an empty environment and tests it there: test.sh FILE.whl
set -e
file=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
size=$(wc -c <"$file")
[ "$size" -le 15000000 ] || { echo "the wheel has $size bytes, more than 15 MB"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv env
env/bin/pip install -q --no-index --disable-pip-version-check "$file"
cp "$here/../../../exec/model/testdata/encoder.onnx" model.onnx
env/bin/python "$here/test/test_package.py"
