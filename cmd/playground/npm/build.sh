#!/bin/sh
# Builds the npm package into a folder: build.sh FOLDER [VERSION]. It needs Go, and npm to pack the files.
set -e
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GOOS=js GOARCH=wasm CGO_ENABLED=0 go build -ldflags="-s -w" -o "$work/nnopt.wasm" ./engine
cp -r bin index.js index.d.ts worker.js package.json README.md ../../../LICENSE "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$work"
# The files in memory are those of the page.
{ cat ../worker/files.js; echo 'export { files, put };'; } >"$work/files.js"
cd "$work"
[ -z "$2" ] || npm version --silent --no-git-tag-version "$2"
npm pack --silent --pack-destination "$out"
