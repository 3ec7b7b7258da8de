// Package kerneltest checks that results have the same bits on every processor: it compares
// checksums with files beside the tests, and runs tests with every set of kernels. Nothing here is
// safe for concurrent use.
package kerneltest

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// Checksums are checksums of numbers by name. Names have no spaces. The zero value is empty. All
// NaN count as equal.
type Checksums struct{ sums map[string]hash.Hash64 }

// Float32s adds numbers to the named checksum.
func (c *Checksums) Float32s(name string, numbers ...float32) {
	for _, v := range numbers {
		if v != v {
			v = float32(math.NaN())
		}
		c.add(name, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
	}
}

// Float64s adds numbers to the named checksum.
func (c *Checksums) Float64s(name string, numbers ...float64) {
	for _, v := range numbers {
		if v != v {
			v = math.NaN()
		}
		c.add(name, binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
	}
}

func (c *Checksums) add(name string, b []byte) {
	if c.sums == nil {
		c.sums = map[string]hash.Hash64{}
	}
	if c.sums[name] == nil {
		c.sums[name] = fnv.New64a()
	}
	c.sums[name].Write(b)
}

// Golden compares the checksums with those in a file, or writes the file. what describes, for
// messages, how the numbers were computed.
func (c *Checksums) Golden(t testing.TB, file, what string, update bool) {
	t.Helper()
	c.golden(t, file, what, update, false)
}

// GoldenPart is Golden, for tests that compute only some of the checksums without the flag -long.
func (c *Checksums) GoldenPart(t testing.TB, file, what string, update bool) {
	t.Helper()
	if update && !longtest.Enabled() {
		t.Fatal("the file has all checksums: -update needs -long")
	}
	c.golden(t, file, what, update, !longtest.Enabled())
}

// golden compares the checksums with those in a file, or with those of the same names.
func (c *Checksums) golden(t testing.TB, file, what string, update, part bool) {
	t.Helper()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.sums)) {
		fmt.Fprintf(&text, "%s %016x\n", name, c.sums[name].Sum64())
	}
	if update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, want := parse(text.String()), parse(string(data))
	if part {
		maps.DeleteFunc(want, func(name, _ string) bool { return got[name] == "" })
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: the bits of %s differ: checksum %q, in %s %q", what, name, got[name], file, want[name])
		}
		delete(got, name)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		t.Errorf("%s: %s is not in %s", what, name, file)
	}
}

// parse returns the checksums of a text by name.
func parse(text string) map[string]string {
	sums := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		name, sum, _ := strings.Cut(line, " ")
		sums[name] = sum
	}
	return sums
}

// Numbers returns n numbers between -8 and 8, with 24 bits. No function is involved whose bits may
// differ.
func Numbers(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.IntN(1<<24)-1<<23) / (1 << 20)
	}
	return v
}
