package decodable

import (
	"context"
	"sync"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/optdb"
)

// programs keeps a program for every shape of chunk. While one worker makes a program, others that want the same wait for it.
type programs struct {
	nn       *nnet3.Nnet
	step     int
	ivector  bool
	opt      *optdb.Optimizer
	capacity int

	mu      sync.Mutex
	entries map[shape]*entry
	clock   uint64 // counts calls of get
	stats   CacheStats

	build sync.Mutex // preparing components that programs share is for one at a time
}

// CacheStats count what happened to requests for programs.
type CacheStats struct {
	// Hits were there, or in the making. Misses were made. Evicted were dropped to make room.
	Hits, Misses, Evicted int
	// Build is the time that it took to make programs: to compile, optimize, check and bind them.
	Build time.Duration
}

// CacheStats returns what happened to the programs of the Scorer so far.
func (s *Scorer) CacheStats() CacheStats {
	s.programs.mu.Lock()
	defer s.programs.mu.Unlock()
	return s.programs.stats
}

// entry is a program, or why there is none, once it has been made.
type entry struct {
	made    chan struct{} // closed then
	givenUp bool          // the context of who made it was done
	program *exec.Program
	err     error
	used    uint64 // clock of the last call of get
}

func (p *programs) init(s *Scorer, opt *optdb.Optimizer, capacity int) {
	p.nn, p.step, p.ivector = s.nn, s.step, s.ivector > 0
	p.opt, p.capacity = opt, capacity
	p.entries = make(map[shape]*entry)
}

// get returns the program for a shape. Failures are kept too: the next utterance would fail the same way. Only one that comes of the end of a context is
// that of its owner alone; who else waits for the program makes it himself.
func (p *programs) get(ctx context.Context, s shape) (*exec.Program, error) {
	for {
		e, mine := p.entry(s)
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

// entry returns the entry for a shape. If it is new, the caller has to fill it.
func (p *programs) entry(s shape) (e *entry, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock++
	e = p.entries[s]
	if mine = e == nil; mine {
		p.stats.Misses++
		p.makeRoom()
		e = &entry{made: make(chan struct{})}
		p.entries[s] = e
	} else {
		p.stats.Hits++
	}
	e.used = p.clock
	return e, mine
}

// fill makes the program of an entry.
func (p *programs) fill(ctx context.Context, s shape, e *entry) {
	e.err = exec.ErrPanic // for those who come later, if make does not return
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

// makeRoom drops the program that was not asked for longest, if there are as many as there may be.
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

// make compiles the request for a shape, optimizes the computation and makes a program of it.
func (p *programs) make(ctx context.Context, s shape) (*exec.Program, error) {
	p.build.Lock()
	defer p.build.Unlock()
	start := time.Now()
	defer func() {
		p.mu.Lock()
		p.stats.Build += time.Since(start)
		p.mu.Unlock()
	}()
	plan, err := pipeline.Build(ctx, p.nn, p.request(s), pipeline.Options{Optimizer: p.opt})
	if err != nil {
		return nil, err
	}
	for _, c := range plan.Optimized.Derived {
		if c, ok := c.(component.Preparer); ok {
			c.Prepare()
		}
	}
	return exec.NewProgram(plan.Optimized, p.nn)
}

// request returns the request for a shape. Its outputs start at time 0, wherever in an utterance a chunk may stand, so that
// all chunks of the shape share the program.
func (p *programs) request(s shape) *computation.Request {
	end := (s.rows-1)*p.step + 1
	req := &computation.Request{
		Inputs:  []computation.IoSpecification{{Name: inputNode, Indexes: grid(s.sequences, -s.left, end+s.right, 1)}},
		Outputs: []computation.IoSpecification{{Name: outputNode, Indexes: grid(s.sequences, 0, end, p.step)}},
	}
	if p.ivector {
		req.Inputs = append(req.Inputs, computation.IoSpecification{Name: ivectorNode, Indexes: grid(s.sequences, 0, 1, 1)})
	}
	return req
}

// grid returns the indexes of sequences at the times [first, end), ordered by sequence, then time.
func grid(sequences, first, end, step int) []index.Index {
	rows := make([]index.Index, 0, sequences*((end-first+step-1)/step))
	for n := range sequences {
		for t := first; t < end; t += step {
			rows = append(rows, index.Index{N: int32(n), T: int32(t)})
		}
	}
	return rows
}
