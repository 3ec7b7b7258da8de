package exec

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
)

// TestBufferSize: a buffer holds what is asked for, wastes at most an eighth, and its size is found
// again.
func TestBufferSize(t *testing.T) {
	last, sizes := 0, 0
	for n := range 1 << 14 {
		size := bufferSize(n)
		if size < n || size < last || n > 64 && 8*(size-n) > n {
			t.Fatalf("%d elements get %d, those before %d", n, size, last)
		}
		if size != last {
			sizes++
		}
		last = size
	}
	if want := 1 + 8*(14-6); sizes != want { // 8 up to each power of two
		t.Errorf("%d sizes, want %d", sizes, want)
	}
	property.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<39).Draw(t, "n")
		size := bufferSize(n)
		if size < n {
			t.Fatalf("%d elements get %d", n, size)
		}
		if again := bufferSize(size); again != size {
			t.Fatalf("%d elements get %d, and those get %d", n, size, again)
		}
	})
}

// TestWorkspace: buffers in use never share memory, and the sizes add up.
func TestWorkspace(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		var w Workspace
		var taken [][]float32
		next := float32(0)
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			if len(taken) > 0 && rapid.Bool().Draw(t, "put") {
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
				for _, v := range taken[i] {
					if v != taken[i][0] {
						t.Fatal("two buffers share memory")
					}
				}
				w.put(taken[i])
				taken[i] = taken[len(taken)-1]
				taken = taken[:len(taken)-1]
				continue
			}
			n := rapid.IntRange(1, 1000).Draw(t, "n")
			b := w.get(n)
			if len(b) != n {
				t.Fatalf("got %d elements of %d", len(b), n)
			}
			next++
			for i := range b {
				b[i] = next
			}
			taken = append(taken, b)
		}
		var bytes int64
		for _, b := range taken {
			bytes += 4 * int64(cap(b))
		}
		if w.Trim(); w.Bytes() != bytes || w.MaxBytes() < bytes {
			t.Fatalf("%d bytes are in use, at most %d were, want %d", w.Bytes(), w.MaxBytes(), bytes)
		}
	})
}

// TestWorkspacePlans: of buffers for plans the largest is kept, and it serves smaller plans.
func TestWorkspacePlans(t *testing.T) {
	var w Workspace
	for _, n := range []int{1000, 500, 3000, 64, 2000} {
		w.putPlan(w.getPlan(n))
	}
	if want := 4 * int64(bufferSize(3000)); w.Bytes() != want || w.MaxBytes() != want {
		t.Errorf("%d bytes, at most %d, want %d", w.Bytes(), w.MaxBytes(), want)
	}
	a, b := w.getPlan(100), w.getPlan(200)
	for i := range a {
		a[i] = 1
	}
	for i := range b {
		b[i] = 2
	}
	if len(a) != 100 || len(b) != 200 || a[99] != 1 {
		t.Error("two plans share memory")
	}
	w.putPlan(b)
	w.putPlan(a)
	if want := 4 * int64(bufferSize(3000)); w.Bytes() != want {
		t.Errorf("%d bytes are kept, want %d", w.Bytes(), want)
	}
	if w.Trim(); w.Bytes() != 0 {
		t.Errorf("%d bytes after Trim", w.Bytes())
	}
}
