#!/bin/sh
# Installs a built package into an empty folder and tests it there: test.sh FILE.tgz
set -e
file=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
size=$(wc -c <"$file")
[ "$size" -le 15000000 ] || { echo "the package has $size bytes, more than 15 MB"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --offline "$file"
cp "$here/../../../exec/model/testdata/encoder.onnx" model.onnx
npx --no-install nnopt opt --output=small.onnx model.onnx
npx --no-install nnopt eval --set input_ids=1,4,2 --shape input_ids=1x3 --set attention_mask=1,1,1 --shape attention_mask=1x3 small.onnx
! npx --no-install nnopt info none.onnx 2>/dev/null
cp "$here"/test/*.test.mjs .
node --test package.test.mjs browser.test.mjs
