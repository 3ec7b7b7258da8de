package exec

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A region is a run of steps that two threads share in two lanes: no step of one lane needs what a step of
// the other makes. The directions of a recurrent layer are an example, whose steps are too small to be
// divided themselves. Memory that the region uses is in use until its end.
type region struct {
	first, next int        // steps
	lanes       [2][]int32 // their steps, in order
	free, dead  []int32    // slots whose memory both lanes use, dead after the region, see step
	takes       float64    // by one thread, in picoseconds
}

const (
	// A step that takes longer than dividedFrom is divided most of the time, and takes dividedShare of
	// its time.
	dividedFrom  = 12e6 // picoseconds
	dividedShare = 0.55
	// A region must save leastSaved, as threads wait for each other at its end, and leastShare of what
	// its steps take.
	leastSaved = 4e6
	leastShare = 0.15
	// longComponent is what makes two components of a region too long to become one.
	longComponent = 2e6
	// mostBytes bounds what the steps of a region make altogether: what waits for both lanes may need all
	// of it.
	mostBytes = 8 << 20
	// mostLooks bounds the search for regions: it is how many steps are looked at, most of them several
	// times.
	mostLooks = 300_000
)

// findRegions finds the regions of a function, and moves steps that must wait for both lanes of one
// behind it. Nothing else depends on the order of steps yet.
func (f *Function) findRegions() {
	n := len(f.steps)
	s := &regionSearch{
		f: f, costs: make([]float64, n), sum: make([]float64, n), parent: make([]int32, n), waits: make([]bool, n), looks: mostLooks,
		maker: make([]int32, f.slots), destroyer: make([]int32, f.slots), users: make([][]int32, f.slots),
	}
	readers := make([]int, f.slots)
	order := make([]int32, n)
	for i := range f.steps {
		order[i] = int32(i)
		s.costs[i] = tensor.Cost(f.steps[i].apply)
		for _, k := range f.steps[i].in {
			readers[k]++
		}
	}
	forks := func(i int32) bool {
		return slices.ContainsFunc(f.steps[i].out, func(k int32) bool { return readers[k] > 1 })
	}
	for at := 0; at < n-1 && s.looks > 0; {
		chosen, saved, takes := s.grow(order[at:])
		if saved >= max(leastSaved, leastShare*takes) || saved > 0 && divide.Always.Load() {
			rest := slices.DeleteFunc(slices.Clone(order[at:]), func(i int32) bool { return slices.Contains(chosen, i) })
			copy(order[at:], slices.Concat(chosen, rest))
			f.regions = append(f.regions, region{first: at, next: at + len(chosen), lanes: s.divide(chosen), takes: takes})
			at += len(chosen)
			continue
		}
		// Another region begins behind something that both of its lanes read. If it began earlier, that
		// would make one component of them.
		for at++; at < n-1 && !forks(order[at-1]); at++ {
		}
	}
	if f.regions == nil {
		return
	}
	steps := make([]step, n)
	position := make([]int32, n)
	for k, i := range order {
		steps[k], position[i] = f.steps[i], int32(k)
	}
	f.steps = steps
	for _, r := range f.regions {
		for _, lane := range r.lanes {
			for k, i := range lane {
				lane[k] = position[i]
			}
		}
	}
}

// A regionSearch looks for a region. The steps that it may have fall into components, which are united as
// steps are added: of two steps, one makes what the other one reads, or overwrites it.
type regionSearch struct {
	f      *Function
	costs  []float64 // by step, in picoseconds
	parent []int32   // by step: another one of its component, or itself
	sum    []float64 // by step that stands for its component: what the component takes
	waits  []bool    // by step: it comes behind the region
	// By slot: the step that makes it, the one that overwrites the memory it owns, and those that use
	// that memory. The first two are -1 if there is none.
	maker, destroyer []int32
	users            [][]int32
	looks            int
}

// begin begins a region without steps.
func (s *regionSearch) begin() {
	for i := range s.maker {
		s.maker[i], s.destroyer[i], s.users[i] = -1, -1, s.users[i][:0]
	}
}

// grow finds the region among some steps, from the first one on, that may save most. It returns its steps,
// how much it saves, and how long it takes one thread.
func (s *regionSearch) grow(steps []int32) (chosen []int32, most, takes float64) {
	s.begin()
	var all, divided, largest, bytes float64
	best := 0
	for _, i := range steps {
		if s.looks--; s.looks < 0 {
			break
		}
		s.add(i)
		if s.waits[i] {
			continue
		}
		if bytes += s.made(i); bytes > mostBytes {
			break
		}
		chosen = append(chosen, i)
		all += s.costs[i]
		if divided += s.costs[i]; s.costs[i] > dividedFrom {
			divided -= float64((1 - dividedShare) * s.costs[i])
		}
		// Two lanes take half of the time at best, and not less than the longest component, which one lane
		// computes alone. What that has to beat is one step after the other, the long ones divided between the
		// threads.
		largest = max(largest, s.sum[s.component(i)])
		if saved := divided - max(largest, all/2); largest < all && saved > most {
			best, most, takes = len(chosen), saved, all
		}
	}
	return chosen[:best], most, takes
}

// made returns about how many bytes a step makes.
func (s *regionSearch) made(i int32) float64 {
	sum := 0.0
	for _, v := range s.f.steps[i].apply.Outputs() {
		t := tensor.TypeOf(v)
		n := float64(t.DType().Size())
		for _, size := range t.Shape() {
			if size == tensor.Unknown {
				size = tensor.AssumedSize
			}
			n *= float64(size)
		}
		sum += n
	}
	return sum
}

// add adds a step, which has to wait if it would unite two long components, or needs one that waits.
func (s *regionSearch) add(i int32) {
	near := s.near(i)
	s.parent[i], s.sum[i], s.waits[i] = i, s.costs[i], false
	long := int32(-1)
	for _, k := range near {
		if s.waits[k] {
			s.waits[i] = true
			break
		}
		if c := s.component(k); s.sum[c] >= longComponent && c != long {
			s.waits[i] = long >= 0
			if long = c; s.waits[i] {
				break
			}
		}
	}
	if !s.waits[i] {
		for _, k := range near {
			s.unite(i, k)
		}
	}
	step := &s.f.steps[i]
	for _, list := range [][]int32{step.in, step.out} {
		for _, k := range list {
			root := s.f.roots[k]
			s.users[root] = append(s.users[root], i)
		}
	}
	for _, d := range destroyMap(step.apply.Op()) {
		s.destroyer[s.f.roots[step.in[d.Input]]] = i
	}
	for _, k := range step.out {
		s.maker[k] = i
	}
}

// near returns the steps before a step that it must come behind.
func (s *regionSearch) near(i int32) []int32 {
	step := &s.f.steps[i]
	var list []int32
	for _, k := range step.in {
		if m := s.maker[k]; m >= 0 {
			list = append(list, m)
		}
		if d := s.destroyer[s.f.roots[k]]; d >= 0 {
			list = append(list, d)
		}
	}
	for _, d := range destroyMap(step.apply.Op()) {
		list = append(list, s.users[s.f.roots[step.in[d.Input]]]...)
	}
	return list
}

// component returns the step that stands for the component of a step.
func (s *regionSearch) component(i int32) int32 {
	for s.parent[i] != i {
		s.parent[i] = s.parent[s.parent[i]]
		i = s.parent[i]
	}
	return i
}

// unite makes one component of two.
func (s *regionSearch) unite(a, b int32) {
	if a, b = s.component(a), s.component(b); a != b {
		s.parent[b] = a
		s.sum[a] += s.sum[b]
	}
}

// divide gives each component of some steps to the lane that has less to do, the largest one first.
func (s *regionSearch) divide(steps []int32) (lanes [2][]int32) {
	s.begin()
	for _, i := range steps {
		s.add(i)
	}
	var components []int32
	for _, i := range steps {
		if s.parent[i] == i {
			components = append(components, i)
		}
	}
	// Graham's rule: the longest first, to the lane with less to do. For two lanes that is at most 7/6 of the
	// best.
	slices.SortStableFunc(components, func(a, b int32) int { return cmp.Compare(s.sum[b], s.sum[a]) })
	lane := make(map[int32]int, len(components))
	var takes [2]float64
	for _, c := range components {
		k := 0
		if takes[1] < takes[0] {
			k = 1
		}
		lane[c] = k
		takes[k] += s.sum[c]
	}
	for _, i := range steps {
		k := lane[s.component(i)]
		lanes[k] = append(lanes[k], i)
	}
	return lanes
}

// delayFrees gives the region what its steps would free while a step of the other lane may use it.
func (f *Function) delayFrees(r *region) {
	used := make(map[int32]int) // by root: 1 and 2 for the lanes
	for k, lane := range r.lanes {
		for _, i := range lane {
			for _, list := range [][]int32{f.steps[i].in, f.steps[i].out} {
				for _, slot := range list {
					used[f.roots[slot]] |= 1 << k
				}
			}
		}
	}
	for i := r.first; i < r.next; i++ {
		s := &f.steps[i]
		s.free = slices.DeleteFunc(s.free, func(root int32) bool {
			if used[root] == 3 {
				r.free = append(r.free, root)
				return true
			}
			return false
		})
	}
}

// lanes computes the lanes of a region.
type lanes struct {
	r      *Runner
	region *region
	ctx    context.Context
	beside *array.Workspace // of the second lane

	mu     sync.Mutex
	failed error
	at     int32 // the step that failed
}

// Part computes a lane, up to a step that fails or the end of the context.
func (l *lanes) Part(k int) {
	ws := &l.r.ws
	if k == 1 {
		ws = l.beside
	}
	for _, i := range l.region.lanes[k] {
		var err error
		if l.ctx.Err() != nil {
			err = context.Cause(l.ctx)
		} else {
			err = l.r.step(ws, int(i))
		}
		if err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			// One thread would have found the first of two faults.
			if l.failed == nil || i < l.at {
				l.failed, l.at = err, i
			}
			return
		}
	}
}

// region computes a region, side by side if that is worth it.
func (r *Runner) region(ctx context.Context, g *region) error {
	if r.ws.Threads.Parts(time.Duration(g.takes/1000)) > 1 {
		l := &r.lanes
		if l.beside == nil {
			l.beside = r.ws.Beside()
		}
		l.r, l.region, l.ctx, l.failed = r, g, ctx, nil
		l.beside.Context = ctx
		r.ws.Threads.Do(len(g.lanes), l)
		l.ctx, l.beside.Context = nil, nil
		if l.failed != nil {
			return l.failed
		}
	} else {
		for i := g.first; i < g.next; i++ {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := r.step(&r.ws, i); err != nil {
				return err
			}
		}
	}
	for _, slot := range g.free {
		r.ws.Release(&r.headers[slot])
	}
	if r.poison {
		r.poisonDead(g.dead)
	}
	return nil
}
