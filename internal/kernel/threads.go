package kernel

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/nnopt/nnopt/internal/divide"
)

// A Job is work that Threads divide in parts.
type Job interface {
	// Part computes a part, by its number. Parts are computed at once and in any order.
	Part(part int)
}

// Threads are goroutines that share one computation: the caller, and helpers. The work is divided
// in parts, which they take one after the other. A part never depends on who computes it, nor on
// when, and no sum is divided but between blocks of a fixed size: so the bits don't depend on the
// number of threads.
//
// Helpers begin when there is work, wait for more for some microseconds, and end. So there is
// nothing to close, and no goroutine is left behind: not at the end of a computation, and not after
// one that is cancelled or panics.
//
// Threads belong to one goroutine at a time. Nil is that goroutine alone.
type Threads struct {
	size  int
	start func() // help, as a value: a go statement with a method allocates
	job   Job
	parts int         // of the job
	busy  atomic.Bool // a job is in progress

	// Several goroutines write to each of these, so each has a cache line of its own.
	_     [lineBytes]byte
	state atomic.Uint64 // which parts of which job are left, see takeFirst
	_     [lineBytes]byte
	done  atomic.Int32 // parts that are finished
	_     [lineBytes]byte
	live  atomic.Int32 // helpers

	waiting  atomic.Bool   // the caller sleeps until all parts are finished
	finished chan struct{} // wakes it
	failure  atomic.Pointer[failure]

	matrix matrixJob
	double doubleJob

	takes   time.Duration // what the last job should take one thread
	own     int           // its parts that the caller has computed
	credit  time.Duration // see settle
	longer  int           // rests that followed each other with little help between them
	resting bool          // no helper is used before rested
	rested  time.Time

	missed time.Duration // time of jobs that followed each other without a helper
	last   time.Time     // when the last of them ended

	measuring bool
	helped    atomic.Int64 // nanoseconds
	waited    time.Duration
}

// failure is the panic of a helper.
type failure struct{ value any }

// NewThreads returns the given number of threads, the caller included. It is nil for one, or where
// only one can run at a time (wasm).
func NewThreads(size int) *Threads {
	if size <= 1 || runtime.GOARCH == "wasm" {
		return nil
	}
	t := &Threads{size: size, finished: make(chan struct{}, 1)}
	t.start = t.help
	return t
}

// Size returns the number of threads.
func (t *Threads) Size() int {
	if t == nil {
		return 1
	}
	return t.size
}

const (
	// minHot is what a job must take to be shared with helpers that wait for it, who take a part
	// within 200 ns. minPart is what a part takes at least, so that taking it costs nothing in
	// comparison.
	minHot  = 6 * time.Microsecond
	minPart = 2 * time.Microsecond
	// minCold is what a job must take if a helper has to begin. That costs the caller 10 to 15 µs,
	// and the helper comes after 25 to 80 µs (Emerald Rapids, virtual, November 2026). Jobs that
	// follow each other count as one: they find the helper that the last of them needed.
	minCold = 150 * time.Microsecond
	// perThread is how many parts there are for a thread: most if they take usualPart, and few
	// otherwise. So if a helper comes late, or its processor is busy with something else, the other
	// threads take most of its parts.
	perThread = 3
	mostParts = 8
	usualPart = 30 * time.Microsecond
)

// Parts returns in how many parts to divide a job that takes one goroutine about the given time:
// 1 if they are busy, or would not finish it sooner. Parts are a multiple of the number of
// threads where there are as many.
func (t *Threads) Parts(takes time.Duration) int {
	switch {
	case t == nil || t.busy.Load():
		return 1
	case divide.Always.Load():
		return perThread * t.size
	case takes < minHot:
		return 1
	}
	if t.live.Load() == 0 && takes < minCold && !t.pays(takes) || t.resting && time.Now().Before(t.rested) {
		return 1
	}
	t.resting = false
	t.takes = takes
	return t.partsOf(takes)
}

// partsOf is Parts where helpers wait.
func (t *Threads) partsOf(takes time.Duration) int {
	n := int(min(takes/minPart, max(time.Duration(perThread*t.size), min(takes/usualPart, time.Duration(mostParts*t.size)))))
	if n > t.size {
		n -= n % t.size
	}
	return max(n, 1)
}

// pays reports whether a helper should begin for a job that is too short for it by itself.
func (t *Threads) pays(takes time.Duration) bool {
	now := time.Now()
	if now.Sub(t.last) > spinFor {
		t.missed = 0 // helpers would not have waited for this job
	}
	t.last = now.Add(takes)
	t.missed += takes
	return t.missed >= minCold
}

const (
	partBits = 16
	maxParts = 1<<partBits - 1
)

// Do computes the n parts of a job, and returns when all are finished. It panics if a part panics.
// A part that itself calls Do computes the parts of that job alone.
func (t *Threads) Do(n int, job Job) {
	if t == nil || n <= 1 || n > maxParts || !t.busy.CompareAndSwap(false, true) {
		for i := range n {
			job.Part(i)
		}
		return
	}
	// Helpers look at the job only after they have taken a part of it, and all parts of the last
	// one are finished: nobody reads what is written here before the state says so.
	t.job, t.parts, t.own = job, n, 0
	t.done.Store(0)
	epoch := uint32(t.state.Load()>>32) + 1
	t.state.Store(uint64(epoch)<<32 | uint64(n)<<partBits)
	t.recruit(min(n, t.size) - 1)
	// Even if a part panics here, helpers must have left the job before the memory that it is about
	// is used for anything else.
	defer t.wait()
	for {
		part, ok := t.takeFirst()
		if !ok {
			return
		}
		t.own++
		t.compute(part)
	}
}

// compute computes a part for Do.
func (t *Threads) compute(part int) {
	defer t.finish()
	t.job.Part(part)
}

// recruit makes sure that there are as many helpers.
func (t *Threads) recruit(helpers int) {
	// A helper that is about to end counts, but won't help. Then the other threads, perhaps the caller
	// alone, do its parts as well.
	missing := helpers - int(t.live.Load())
	if missing <= 0 {
		return
	}
	t.missed = 0
	for range missing {
		t.live.Add(1)
		go t.start()
	}
	// The scheduler runs the goroutine that began last on this processor next, and other processors
	// don't steal it for a while. So one that does nothing takes that place.
	go nothing()
}

func nothing() {}

// The caller takes the first part that is left, and a helper the last one. So if jobs are divided
// alike, by rows for example, a thread finds in its cache what it has made of its rows before.
//
// A state is the number of the job, behind the last part that is left, and the first one that is
// left, in 32, 16 and 16 bits. The number keeps a goroutine that has looked at an old state from
// taking a part of a new job.

// takeFirst takes the first part that is left. It reports false if there is none.
func (t *Threads) takeFirst() (part int, ok bool) {
	for {
		s := t.state.Load()
		first, end := int(s&maxParts), int(s>>partBits&maxParts)
		if first >= end {
			return 0, false
		}
		if t.state.CompareAndSwap(s, s+1) {
			return first, true
		}
	}
}

// takeLast takes the last part that is left.
func (t *Threads) takeLast() (part int, ok bool) {
	for {
		s := t.state.Load()
		first, end := int(s&maxParts), int(s>>partBits&maxParts)
		if first >= end {
			return 0, false
		}
		if t.state.CompareAndSwap(s, s-1<<partBits) {
			return end - 1, true
		}
	}
}

// finish counts a part as finished.
func (t *Threads) finish() {
	// What the job's parts are is read before the count: behind it, there may be another job.
	if n := t.parts; int(t.done.Add(1)) == n && t.waiting.CompareAndSwap(true, false) {
		t.finished <- struct{}{}
	}
}

const (
	// spinFor is how long a helper waits for the next job: longer than the time between two jobs of a
	// computation, and too short to be noticed elsewhere.
	spinFor = 200 * time.Microsecond
	// waitFor is how long the caller waits before it sleeps.
	waitFor = 50 * time.Microsecond
	// A helper is late if the caller waits for it for longer than lateFor and the time of two parts. A
	// quarter of what helpers compute is credit, up to mostCredit, and waiting for late ones takes it
	// away. Without credit, jobs are computed without helpers for restFor times as long as it would not
	// cover, but not longer than firstRest. Each further rest is twice as long, up to longestRest, until
	// helpers have earned mostCredit again.
	//
	// Training a TDNN-F, a helper is late by 1 to 5 ms once in two runs of 170 ms, in which helpers
	// compute for 140 ms: even without any other program, the system has something to do. To rest after
	// each, for 20 times as long, was a sixth of the work. With another program that keeps one of two
	// processors busy, training takes 1.1 times as long as with one thread (Sapphire Rapids, 2026-11-26).
	lateFor     = 300 * time.Microsecond
	creditFor   = 4
	mostCredit  = 6 * time.Millisecond
	restFor     = 20
	firstRest   = 100 * time.Millisecond
	longestRest = time.Second
	mostLonger  = 10
	// spins is how often a goroutine looks before it looks at the clock.
	spins = 16
)

// wait returns when all parts are finished.
func (t *Threads) wait() {
	// If a part has panicked, those that are left stay undone.
	for {
		if _, ok := t.takeFirst(); !ok {
			break
		}
		t.finish()
	}
	var waited time.Duration
	if int(t.done.Load()) < t.parts {
		waited = t.waitForHelpers()
	}
	t.settle(waited)
	t.job = nil
	f := t.failure.Swap(nil)
	t.busy.Store(false)
	if f != nil {
		panic(f.value)
	}
}

func (t *Threads) waitForHelpers() (waited time.Duration) {
	n := t.parts
	start := time.Now()
	for i := 0; int(t.done.Load()) < n; i++ {
		if i%spins != 0 || time.Since(start) < waitFor {
			pause()
			continue
		}
		// The thread that finishes the last part wakes the caller, but only if the caller has said
		// before that it sleeps.
		t.waiting.Store(true)
		if int(t.done.Load()) == n && t.waiting.CompareAndSwap(true, false) {
			break
		}
		<-t.finished
	}
	waited = time.Since(start)
	if t.measuring {
		t.waited += waited
	}
	return waited
}

// settle weighs what helpers have computed of a job against how long the caller has waited for them.
// A helper that is late has lost its processor to another program, and has taken a part with it. If
// that happens too often, one thread is faster than two that wait for a third.
func (t *Threads) settle(waited time.Duration) {
	part := t.takes / time.Duration(t.parts)
	if t.credit += time.Duration(t.parts-t.own) * part / creditFor; t.credit >= mostCredit {
		t.credit, t.longer = mostCredit, 0
	}
	if waited <= lateFor+2*part {
		return
	}
	if t.credit -= waited; t.credit < 0 {
		rest := min(min(restFor*-t.credit, firstRest)<<t.longer, longestRest)
		t.resting, t.rested = true, time.Now().Add(rest)
		t.credit, t.longer = 0, min(t.longer+1, mostLonger)
	}
}

// help takes parts of jobs until there has been none for a while.
func (t *Threads) help() {
	defer t.live.Add(-1)
	last := time.Now()
	for i := 1; ; i++ {
		if part, ok := t.takeLast(); ok {
			t.helpWith(part)
			last, i = time.Now(), 0
			continue
		}
		pause()
		if i%spins == 0 && time.Since(last) > spinFor {
			return
		}
	}
}

// helpWith computes a part for the caller.
func (t *Threads) helpWith(part int) {
	defer t.finish()
	// A panic of a part is the caller's.
	defer func() {
		if p := recover(); p != nil {
			t.failure.CompareAndSwap(nil, &failure{p})
		}
	}()
	if !t.measuring {
		t.job.Part(part)
		return
	}
	start := time.Now()
	t.job.Part(part)
	t.helped.Add(int64(time.Since(start)))
}

// Measure makes the threads measure what Measured returns, or not any more.
func (t *Threads) Measure(on bool) {
	if t != nil {
		t.measuring = on
	}
}

// Measured returns how long helpers have worked on jobs, and how long the caller has waited for them,
// since measuring began.
func (t *Threads) Measured() (helped, waited time.Duration) {
	if t == nil {
		return 0, 0
	}
	return time.Duration(t.helped.Load()), t.waited
}
