package tune

import (
	"context"
	"math"
	"runtime"
	"slices"
	"time"
)

// A Ratio is how the time of one computation compares to that of another: the median of the ratios of
// blocks, and an interval that has the true median with a probability of 95 %.
type Ratio struct {
	Median, Low, High float64
	Blocks            int // of four runs or more each
}

// slot is how long one side runs before the other has its turn. The clock and the change of caches
// matter less then: runs of microseconds are repeated.
const slot = 2 * time.Millisecond

// A side is one of two computations that take turns.
type side struct {
	clock   *clock
	run     func(context.Context) error
	repeats int // in a slot; 0 until it is warm
}

// warm finds how often a side runs in a slot, and runs it until its memory and the caches are as they will
// stay: the first runs of what was made just now are slow, because the system gives it its memory, and
// blocks with them would say that it is far slower.
func (s *side) warm(ctx context.Context) error {
	if s.repeats > 0 { // only the caches have forgotten it
		_, err := s.time(ctx)
		return err
	}
	s.repeats = 1
	for {
		took, err := s.time(ctx)
		if err != nil {
			return err
		}
		if took >= slot || s.repeats >= 1<<20 {
			break
		}
		s.repeats *= 2
	}
	best := time.Duration(math.MaxInt64)
	for i := range mostWarm {
		took, err := s.time(ctx)
		if err != nil {
			return err
		}
		// It is warm once it does not get quicker any more, and what takes long touches all its memory in
		// the first run.
		if i >= leastWarm && float64(took) > 0.97*float64(best) || took > longRun {
			break
		}
		best = min(best, took)
	}
	return nil
}

// A side has at least and at most so many slots to get warm, and a few if they are long.
const (
	leastWarm, mostWarm = 2, 10
	longRun             = 50 * time.Millisecond
)

// time runs a side for a slot.
func (s *side) time(ctx context.Context) (time.Duration, error) {
	start := s.clock.spent()
	for range s.repeats {
		if err := s.run(ctx); err != nil {
			return 0, err
		}
	}
	return s.clock.spent() - start, ctx.Err()
}

// A verdict is what a measurement comes to.
type verdict int

const (
	undecided verdict = iota
	pays
	doesNotPay
)

// duel is a measurement of two sides in turns.
type duel struct {
	clock  *clock
	again  bool      // it has been decided once that the second side pays
	ratios []float64 // of blocks, in order of size
	base   []float64 // seconds of a run of the first side
}

// measure runs two sides in turns until it is decided whether the second pays, or the time is over. At
// least one block is run. It goes on from the blocks that d has.
func (d *duel) measure(ctx context.Context, first, second *side, most time.Duration) (verdict, error) {
	sides := [2]*side{first, second}
	runtime.GC() // what made the two has left garbage, whose collection would meet one of them
	deadline := d.clock.now().Add(most)
	for _, s := range sides {
		if err := s.warm(ctx); err != nil {
			return undecided, err
		}
	}
	for {
		// A block is A B B A or B A A B: what grows or fades evenly, such as the heat of the processor,
		// meets both sides alike. A disturbance spoils one block, and the median of blocks ignores it.
		order := [4]int{0, 1, 1, 0}
		if len(d.ratios)%2 == 1 {
			order = [4]int{1, 0, 0, 1}
		}
		var run [2]float64 // seconds of a run: a side may need fewer of them to fill a slot
		for _, i := range order {
			took, err := sides[i].time(ctx)
			if err != nil {
				return undecided, err
			}
			run[i] += max(took, 1).Seconds() / float64(2*sides[i].repeats)
		}
		d.ratios = append(d.ratios, run[1]/run[0])
		d.base = append(d.base, run[0])
		if v := d.verdict(); v != undecided || len(d.ratios) >= mostBlocks || d.clock.now().After(deadline) {
			return v, nil
		}
	}
}

// Worth is what a choice must save to be kept, as a part of the time. Less is not worth a term in a
// query, and two copies of one computation may differ by that, because their memory lies elsewhere.
const Worth = 0.01

// A measurement that has not been decided after so many blocks will hardly be.
const mostBlocks = 400

// The probabilities of errors. A choice that is kept wrongly makes the query longer at every tuning, so
// its probability is lower. It is looked at after some blocks only, see due, and a choice that pays has
// to pay once more.
const (
	riskOfKeeping      = 0.005
	riskOfKeepingAgain = 0.05
	riskOfDropping     = 0.05
)

// far is a ratio that noise hardly reaches in each of the first blocks of something that pays, of which
// there are so many.
const far, farBlocks = 1.1, 4

// verdict decides if that can be done.
func (d *duel) verdict() verdict {
	// What is far slower in each block needs no statistics, and its runs would cost the most time.
	if len(d.ratios) >= farBlocks && slices.Min(d.ratios) > far {
		return doesNotPay
	}
	if !due(len(d.ratios)) {
		return undecided
	}
	risk := riskOfKeeping
	if d.again {
		risk = riskOfKeepingAgain
	}
	if _, high, ok := interval(d.ratios, risk); ok && high < 1 && median(d.ratios) <= 1-Worth {
		return pays
	}
	if low, _, ok := interval(d.ratios, riskOfDropping); ok && low > 1-Worth {
		return doesNotPay
	}
	return undecided
}

// due reports whether it is time for a look after n blocks. Each look is a chance to err, so there are
// few: the next one is after a quarter more blocks.
func due(n int) bool {
	for next := 6; next <= n; next += max(2, next/4) {
		if next == n {
			return true
		}
	}
	return false
}

// ratio returns the result.
func (d *duel) ratio() Ratio {
	low, high, ok := interval(d.ratios, riskOfDropping)
	if !ok { // too few blocks: all that was seen
		low, high = slices.Min(d.ratios), slices.Max(d.ratios)
	}
	return Ratio{Median: median(d.ratios), Low: low, High: high, Blocks: len(d.ratios)}
}

func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// interval returns the order statistics between which the median lies, except with a probability of at
// most risk, whatever the distribution: each sample is below the median with probability one half, so the
// number of those below is binomial. ok is false if there are too few samples.
func interval(list []float64, risk float64) (low, high float64, ok bool) {
	s := slices.Sorted(slices.Values(list))
	n := len(s)
	// tail is the probability of at most k samples below the median.
	term := math.Ldexp(1, -n) // n over k, divided by 2 to the n
	if n > 1000 {
		return 0, 0, false
	}
	tail, k := term, 0
	for 2*tail <= risk {
		k++
		term = float64(term * (float64(n-k+1) / float64(k)))
		tail += term
	}
	if k == 0 {
		return 0, 0, false
	}
	return s[k-1], s[n-k], true
}
