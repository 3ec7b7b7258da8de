#!/bin/sh
# Compares BenchmarkMul with OpenBLAS, in processes that take turns (a process that has called C slows Go down for a while).
# usage: compare.sh SET CORETYPE [ROUNDS [SECONDS]], for example: compare.sh avx512 SkylakeX
# It prints, for each size, the median over the rounds of the best GFLOP/s of a round, ours and theirs, and the ratio.
set -eu
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cc -O2 -o "$tmp/openblas" testdata/openblas.c -lopenblas
go test -c -o "$tmp/ours" .
for _ in $(seq "${3:-7}"); do
	"$tmp/ours" -test.run '^$' -test.bench "^BenchmarkMul\$/^$1\$" -test.benchtime "${4:-0.2}s" >>"$tmp/ours.txt"
	OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE=$2 "$tmp/openblas" "${4:-0.2}" >>"$tmp/theirs.txt"
done
medians() {
	awk '/^Benchmark/ { sub(/-[0-9]+$/, "", $1); sub(/.*\//, "", $1); for (i = 2; i <= NF; i++) if ($i == "best-GFLOP/s") print $1, $(i-1) }' "$1" |
		sort -k1,1 -k2,2n | awk '{ if ($1 != name && name != "") { print name, v[int((n+1)/2)]; n = 0 } name = $1; v[++n] = $2 } END { print name, v[int((n+1)/2)] }'
}
medians "$tmp/ours.txt" | sort >"$tmp/a"
medians "$tmp/theirs.txt" | sort >"$tmp/b"
join "$tmp/a" "$tmp/b" | awk '{ printf "| %s | %.1f | %.1f | %.2f |\n", $1, $2, $3, $2/$3 }'
