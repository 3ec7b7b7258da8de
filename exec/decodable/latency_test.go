package decodable

import (
	"testing"
	"time"
)

// TestPercentiles: percentiles are at most one percent too large, and never beyond the greatest.
func TestPercentiles(t *testing.T) {
	var a, b histogram
	if l := a.latencies(); l != (Latencies{}) {
		t.Errorf("of nothing: %+v", l)
	}
	for i := 1; i <= 1000; i++ {
		h := &a
		if i%3 == 0 {
			h = &b
		}
		h.count(time.Duration(i) * time.Millisecond)
	}
	a.add(&b)
	l := a.latencies()
	for _, c := range []struct{ got, want time.Duration }{{l.Median, 500}, {l.P95, 950}, {l.P99, 990}, {l.Max, 1000}} {
		want := c.want * time.Millisecond
		if c.got < want || float64(c.got) > 1.01*float64(want) || c.got > time.Second {
			t.Errorf("%v, want %v", c.got, want)
		}
	}
	for bin := range 5000 {
		if first, last := lastOf(bin-1)+1, lastOf(bin); bin > 0 && binOf(first) != bin || binOf(last) != bin || last > 256 && float64(last-first) > 0.01*float64(first) {
			t.Fatalf("bin %d has %d to %d", bin, first, last)
		}
	}
	var c histogram
	c.count(0)
	c.count(-time.Second)
	if l := c.latencies(); l.Median != 0 || l.Max != 0 {
		t.Errorf("%+v", l)
	}
}
