package kernel

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// counting counts how often each part is computed.
type counting struct {
	parts [100]atomic.Int32
	work  time.Duration
	fails int
}

func (c *counting) Part(i int) {
	for start := time.Now(); time.Since(start) < c.work; {
	}
	if i+1 == c.fails {
		panic(i)
	}
	c.parts[i].Add(1)
}

// TestParts: every part is computed once, whatever the size of the threads.
func TestThreadParts(t *testing.T) {
	for _, size := range []int{0, 1, 2, 3, 8} {
		threads := NewThreads(size)
		for n := range 100 {
			c := new(counting)
			threads.Do(n, c)
			for i := range c.parts {
				if got, want := c.parts[i].Load() == 1, i < n; got != want || c.parts[i].Load() > 1 {
					t.Fatalf("%d members: part %d of %d is computed %d times", size, i, n, c.parts[i].Load())
				}
			}
		}
	}
}

// TestHelpersWork: parts are computed at a time.
func TestHelpersWork(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one processor")
	}
	threads := NewThreads(2)
	threads.Measure(true)
	for range 1000 {
		threads.Do(4, &counting{work: 100 * time.Microsecond})
		if helped, _ := threads.Measured(); helped > 0 {
			return
		}
	}
	t.Error("nobody has helped")
}

type nestedParts struct {
	threads *Threads
	c       counting
}

func (n *nestedParts) Part(i int) {
	n.threads.Do(3, &oneOf{n, i})
}

type oneOf struct {
	*nestedParts
	i int
}

func (o *oneOf) Part(k int) { o.c.Part(3*o.i + k) }

// TestNested: a part may have parts.
func TestNestedParts(t *testing.T) {
	n := &nestedParts{threads: NewThreads(3)}
	for range 100 {
		n.threads.Do(20, n)
	}
	for i := range 60 {
		if k := n.c.parts[i].Load(); k != 100 {
			t.Fatalf("part %d is computed %d times", i, k)
		}
	}
}

// goroutines waits until there are no more than the given number of goroutines.
func goroutines(t *testing.T, want int) {
	t.Helper()
	var got int
	for range 2000 {
		if got = runtime.NumGoroutine(); got <= want {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, want %d", got, want)
}

// TestPanics: a part that panics makes Do panic, in whatever goroutine it was, and leaves a threads
// that works, without parts that are still computed.
func TestPartsPanic(t *testing.T) {
	before := runtime.NumGoroutine()
	threads := NewThreads(3)
	for k := range 300 {
		c := &counting{work: 5 * time.Microsecond, fails: k%20 + 1}
		func() {
			defer func() {
				if p := recover(); p != k%20 {
					t.Fatalf("part %d panics, Do with %v", k%20, p)
				}
			}()
			threads.Do(20, c)
		}()
		ok := new(counting)
		threads.Do(20, ok)
		for i := range 20 {
			if ok.parts[i].Load() != 1 {
				t.Fatalf("after a panic, part %d is computed %d times", i, ok.parts[i].Load())
			}
		}
	}
	goroutines(t, before)
}

// TestNothingIsLeft: jobs allocate nothing, and leave no goroutine.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	threads, c := NewThreads(4), new(counting)
	run := func() {
		threads.Do(7, c)
		if c.work++; c.work%100 == 0 {
			time.Sleep(2 * spinFor) // so that helpers end
		}
	}
	run()
	if n := testing.AllocsPerRun(1000, run); n >= 1 {
		t.Errorf("%v allocations", n)
	}
	goroutines(t, before)
}

// TestDecidesParts: what is not worth it has one part, and a nil threads never has more.
func TestDecidesParts(t *testing.T) {
	threads := NewThreads(4)
	for _, c := range []struct {
		takes time.Duration
		want  int
	}{{0, 1}, {minHot - 1, 1}, {minCold/2 + 1, 1}, {minCold/2 + 1, 12}, {minCold, 12}, {600 * time.Microsecond, 20}, {time.Hour, 32}} {
		threads.last = time.Now().Add(time.Hour) // however long this goroutine has waited, helpers have not
		if got := threads.Parts(c.takes); got != c.want {
			t.Errorf("%v: %d parts, want %d", c.takes, got, c.want)
		}
	}
	if n := (*Threads)(nil).Parts(time.Hour); n != 1 {
		t.Errorf("nil: %d parts", n)
	}
}

// TestRest: threads rest after helpers that are late for longer than what they have computed is worth,
// and the longer the more that is.
func TestRest(t *testing.T) {
	threads := NewThreads(2)
	job := func(own int, waited time.Duration) (rest time.Duration) {
		threads.takes, threads.parts, threads.own, threads.resting = time.Millisecond, 10, own, false
		threads.settle(waited)
		if !threads.resting {
			return 0
		}
		return time.Until(threads.rested)
	}
	if rest := job(10, time.Millisecond); rest < restFor*time.Millisecond/2 || rest > restFor*time.Millisecond {
		t.Errorf("a helper that does nothing is late for a millisecond: rest for %v", rest)
	}
	if rest := job(10, time.Hour); rest < firstRest || rest > 2*firstRest {
		t.Errorf("a helper is late for an hour, the second time: rest for %v", rest)
	}
	for range 100 {
		if rest := job(10, time.Hour); rest > longestRest {
			t.Errorf("a helper is always late: rest for %v", rest)
		}
	}
	for range 100 {
		if rest := job(5, lateFor+200*time.Microsecond); rest > 0 {
			t.Fatalf("a helper is not late: rest for %v", rest)
		}
	}
	for i, rests := range []bool{false, false, true, true} {
		if rest := job(5, 3*time.Millisecond); rest > 0 != rests {
			t.Errorf("after much help a helper is late for 3 ms, time %d: rest for %v", i+1, rest)
		}
	}
}

func BenchmarkDo(b *testing.B) {
	for _, size := range []int{1, 2} {
		b.Run(map[int]string{1: "alone", 2: "two"}[size], func(b *testing.B) {
			threads, c := NewThreads(size), new(counting)
			for range b.N {
				threads.Do(6, c)
			}
		})
	}
}

// BenchmarkCold is the time of a job of 400 µs when no helper is there.
func BenchmarkCold(b *testing.B) {
	for _, size := range []int{1, 2} {
		b.Run(map[int]string{1: "alone", 2: "two"}[size], func(b *testing.B) {
			threads, c := NewThreads(size), &counting{work: 10 * time.Microsecond}
			var sum time.Duration
			for range b.N {
				time.Sleep(time.Millisecond)
				start := time.Now()
				threads.Do(40, c)
				sum += time.Since(start)
			}
			b.ReportMetric(float64(sum.Nanoseconds())/float64(b.N), "ns/job")
		})
	}
}
