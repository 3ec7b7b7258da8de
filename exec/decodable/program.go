package decodable

import (
	"context"
	"sync"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
)

// programs keeps a program for every shape of chunk. While one worker makes a program, others that
// need it wait.
type programs struct {
	s        *Scorer
	opt      *optdb.Optimizer
	capacity int

	mu      sync.Mutex
	entries map[shape]*entry
	clock   uint64 // counts calls of get
	stats   CacheStats

	build sync.Mutex // held while a program is made, because programs share components that are prepared
}

// CacheStats count requests for programs.
type CacheStats struct {
	// Hits found a program, finished or in the making. Misses had to make one. Evicted programs
	// were dropped to make room.
	Hits, Misses, Evicted int
	// Build is the time to compile, optimize, check and bind programs.
	Build time.Duration
}

// entry is a program, or an error, once it is made.
type entry struct {
	made    chan struct{} // closed when it is made
	givenUp bool          // because the maker's context was done
	early   bool          // ensure made it, and it was not taken yet
	program *exec.Program
	err     error
	used    uint64 // clock of the last call of get
}

// get returns the program for a shape. It keeps failures, too: the next utterance would fail in the
// same way. But if a program was given up because its maker's context was done, the next caller
// makes it. early says that ensure asks.
func (p *programs) get(ctx context.Context, s shape, early bool) (*exec.Program, error) {
	for {
		e, mine := p.entry(s, early)
		if mine {
			p.fill(ctx, s, e)
			return e.program, e.err
		}
		select {
		case <-e.made:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !e.givenUp {
			return e.program, e.err
		}
	}
}

// ensure makes the program for a shape, or returns why it can't be made. Who then gets the program
// does not count as a hit.
func (p *programs) ensure(ctx context.Context, s shape) error {
	_, err := p.get(ctx, s, true)
	return err
}

// entry returns the entry for a shape. If it is new (mine), the caller must fill it.
func (p *programs) entry(s shape, early bool) (e *entry, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock++
	e = p.entries[s]
	if mine = e == nil; mine {
		p.stats.Misses++
		p.makeRoom()
		e = &entry{made: make(chan struct{}), early: early}
		p.entries[s] = e
	} else if !early {
		if !e.early {
			p.stats.Hits++
		}
		e.early = false
	}
	e.used = p.clock
	return e, mine
}

// fill makes the program of an entry.
func (p *programs) fill(ctx context.Context, s shape, e *entry) {
	e.err = exec.ErrPanic // for later callers, if make panics
	defer func() {
		if e.givenUp = e.err != nil && ctx.Err() != nil; e.givenUp {
			p.mu.Lock()
			if p.entries[s] == e {
				delete(p.entries, s)
			}
			p.mu.Unlock()
		}
		close(e.made)
	}()
	e.program, e.err = p.make(ctx, s)
}

func (s *Scorer) cacheStats() CacheStats {
	s.programs.mu.Lock()
	defer s.programs.mu.Unlock()
	return s.programs.stats
}

// makeRoom drops the least recently used program if the cache is full.
func (p *programs) makeRoom() {
	if len(p.entries) < p.capacity {
		return
	}
	var oldest shape
	least := p.clock
	for s, e := range p.entries {
		if e.used < least {
			oldest, least = s, e.used
		}
	}
	delete(p.entries, oldest)
	p.stats.Evicted++
}

// make compiles the request for a shape, optimizes the computation, and makes a program of it.
func (p *programs) make(ctx context.Context, s shape) (*exec.Program, error) {
	p.build.Lock()
	defer p.build.Unlock()
	start := time.Now()
	defer func() {
		p.mu.Lock()
		p.stats.Build += time.Since(start)
		p.mu.Unlock()
	}()
	plan, err := pipeline.Build(ctx, p.s.nn, p.request(s), pipeline.Options{Optimizer: p.opt})
	if err != nil {
		return nil, err
	}
	for _, c := range plan.Optimized.Derived {
		Pack(c)
	}
	program, err := exec.NewProgram(plan.Optimized, p.s.nn)
	if err != nil {
		return nil, err
	}
	// The program holds what components have precomputed from these indexes. The indexes themselves
	// would be a third of its memory, and there is a program for every length of a last chunk.
	for i := range plan.Optimized.PrecomputedIndexes {
		pre := &plan.Optimized.PrecomputedIndexes[i]
		pre.InputIndexes, pre.OutputIndexes = nil, nil
	}
	return program, nil
}

// request returns the request for a shape. Its outputs start at time 0 for all chunks, so that
// chunks of a shape share the program.
func (p *programs) request(s shape) *computation.Request {
	end := (s.rows-1)*p.s.step + 1
	req := &computation.Request{
		Inputs:  []computation.IoSpecification{pipeline.Grid(inputNode, s.sequences, -s.left, end+s.right, 1)},
		Outputs: []computation.IoSpecification{pipeline.Grid(outputNode, s.sequences, 0, end, p.s.step)},
	}
	if p.s.ivector > 0 {
		req.Inputs = append(req.Inputs, pipeline.Grid(ivectorNode, s.sequences, 0, 1, 1))
	}
	return req
}
