package tune

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// TestInterval: the interval has the median of a distribution about as often as it promises.
func TestInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{6, 9, 20, 75} {
		for _, risk := range []float64{riskOfDropping, riskOfKeeping} {
			outside, rounds := 0, 4000
			if _, _, ok := interval(make([]float64, n), risk); !ok {
				continue
			}
			for range rounds {
				list := make([]float64, n)
				for i := range list {
					list[i] = math.Exp(rng.NormFloat64()) // its median is 1
				}
				if low, high, _ := interval(list, risk); low > 1 || high < 1 {
					outside++
				}
			}
			if rate := float64(outside) / float64(rounds); rate > 1.3*risk {
				t.Errorf("%d samples, risk %v: %v are outside", n, risk, rate)
			}
		}
	}
	if _, _, ok := interval(make([]float64, 5), riskOfDropping); ok {
		t.Error("five samples are enough for an interval")
	}
	if low, high, ok := interval([]float64{3, 1, 2, 6, 5, 4}, riskOfDropping); !ok || low != 1 || high != 6 {
		t.Errorf("interval of six samples: %v to %v, %v", low, high, ok)
	}
}

func TestDue(t *testing.T) {
	looks := 0
	for n := range mostBlocks + 1 {
		if due(n) {
			looks++
		}
	}
	if looks < 10 || looks > 25 || due(5) || !due(6) || due(7) || !due(8) {
		t.Errorf("%d looks", looks)
	}
}

// TestVerdict decides about ratios that are certain.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		want  verdict
	}{{0.5, pays}, {0.97, pays}, {0.995, doesNotPay}, {1, doesNotPay}, {1.5, doesNotPay}} {
		var d duel
		for len(d.ratios) < mostBlocks && d.verdict() == undecided {
			d.ratios = append(d.ratios, c.ratio)
		}
		if got := d.verdict(); got != c.want {
			t.Errorf("a ratio of %v: %v after %d blocks, want %v", c.ratio, got, len(d.ratios), c.want)
		}
	}
	if v := (&duel{ratios: []float64{1.8, 1.9, 1.8, 1.7}}).verdict(); v != doesNotPay {
		t.Errorf("far slower: %v", v)
	}
	noise := duel{ratios: []float64{0.5, 2, 0.5, 2, 0.5, 2, 0.5, 2}}
	if v := noise.verdict(); v != undecided {
		t.Errorf("noise is decided: %v", v)
	}
}

// TestClock: the time of a thread passes in small steps while it computes, and not while it sleeps.
func TestClock(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, ok := threadTime(); !ok {
		t.Skip("the system does not tell")
	}
	c := systemClock()
	begin := c.spent()
	time.Sleep(200 * time.Millisecond)
	slept := c.spent() - begin
	steps := 0
	for last := begin; c.spent()-begin < slept+20*time.Millisecond; {
		if now := c.spent(); now != last {
			last, steps = now, steps+1
		}
	}
	if steps < 100 {
		t.Errorf("%d steps in 20 ms", steps)
	}
	if slept > 100*time.Millisecond {
		t.Errorf("sleeping takes %v", slept)
	}
}

// TestMeasure runs sides in turns, and as often as each other.
func TestMeasure(t *testing.T) {
	var runs [2]int
	var at time.Time
	sleep := func(d time.Duration) { at = at.Add(d) }
	c := Options{}.WithClock(func() time.Time { return at }).clock
	sideOf := func(run func(context.Context) error) *side { return &side{clock: c, run: run} }
	side := func(i int, d time.Duration) *side {
		return sideOf(func(context.Context) error {
			runs[i]++
			sleep(d)
			return nil
		})
	}
	d := duel{clock: c}
	v, err := d.measure(t.Context(), side(0, 10*time.Millisecond), side(1, 2*time.Millisecond), time.Minute)
	if err != nil || v != pays || d.ratio().Median != 0.2 {
		t.Errorf("%v, %v, %v", d, v, err)
	}
	if n := len(d.ratios); n < 9 || runs[0] < 2*n || runs[1] < 2*n {
		t.Errorf("%d blocks, %v runs", n, runs)
	}
	d = duel{clock: c}
	if v, err = d.measure(t.Context(), side(0, time.Millisecond), side(1, 10*time.Millisecond), time.Minute); err != nil || v != doesNotPay || len(d.ratios) != farBlocks {
		t.Errorf("%v, %v, %v", d, v, err)
	}
	d = duel{clock: c}
	if v, err = d.measure(t.Context(), side(0, time.Millisecond), side(1, 10*time.Millisecond), 0); err != nil || v != undecided || len(d.ratios) != 1 {
		t.Errorf("without time: %v, %v, %v", d, v, err)
	}
	// What has been measured counts on.
	for range 20 {
		if v, err = d.measure(t.Context(), side(0, 10*time.Millisecond), side(1, 9*time.Millisecond), 0); err != nil || v != undecided {
			break
		}
	}
	if err != nil || v != pays || len(d.ratios) < 9 {
		t.Errorf("block by block: %v, %v, %v", d, v, err)
	}
	// The first runs of what was just made are slow.
	fresh := 30 * time.Millisecond
	slow := sideOf(func(context.Context) error {
		sleep(fresh + 9*time.Millisecond)
		fresh /= 2
		return nil
	})
	d = duel{clock: c}
	if v, err = d.measure(t.Context(), side(0, 10*time.Millisecond), slow, time.Minute); err != nil || v != pays || d.ratios[len(d.ratios)-1] > 1 {
		t.Errorf("with slow first runs: %v, %v, %v", d, v, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = (&duel{clock: c}).measure(ctx, side(0, 0), side(1, 0), time.Minute); err == nil {
		t.Error("it goes on after it was canceled")
	}
}
