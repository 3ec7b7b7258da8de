package compile

import (
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// CompilerOptions are options of a Compiler. The zero value suits most callers.
type CompilerOptions struct {
	Options
	// Capacity is the number of computations to keep; 0 means 64. The least recently used go first.
	Capacity int
	// Optimize, if not nil, turns each compiled computation into the one to keep. It may change its
	// argument. Several goroutines may call it at once.
	Optimize func(c *computation.Computation, req *computation.Request) (*computation.Computation, error)
}

func (o *CompilerOptions) capacity() int {
	if o.Capacity > 0 {
		return o.Capacity
	}
	return 64
}

// Compiler compiles requests for one network and keeps the results. It is safe for concurrent use.
// While one goroutine compiles a request, others with the same request wait.
type Compiler struct {
	net  *network
	opts CompilerOptions

	mu      sync.Mutex
	entries map[uint64][]*list.Element // by hash of the request
	recent  *list.List                 // of *cached, the most recently used in front
	stats   CacheStats
}

// CacheStats counts requests by what happened to them.
type CacheStats struct {
	// Hits were kept or just being compiled. Misses were compiled, even if that failed. Evicted
	// were dropped.
	Hits, Misses, Evicted int
	// Kept is the number of computations in the cache.
	Kept int
}

// cached is a request and, once done is closed, its result.
type cached struct {
	hash uint64
	req  *computation.Request
	done chan struct{}
	comp *computation.Computation
	err  error
}

// NewCompiler returns a Compiler for a network, which must not change. Errors wrap
// nnet3.ErrNetwork.
func NewCompiler(nn *nnet3.Nnet, opts CompilerOptions) (*Compiler, error) {
	net, err := newNetwork(nn)
	if err != nil {
		return nil, err
	}
	return &Compiler{net: net, opts: opts, entries: make(map[uint64][]*list.Element), recent: list.New()}, nil
}

// Compile returns the computation for a request. All callers share it, so it must not be changed.
// Errors are those of the function Compile and of Optimize; they are not kept.
func (c *Compiler) Compile(req *computation.Request) (*computation.Computation, error) {
	if err := c.net.checkRequest(req); err != nil {
		return nil, err
	}
	hash := req.Hash()
	c.mu.Lock()
	if e := c.lookUp(hash, req); e != nil {
		c.stats.Hits++
		c.recent.MoveToFront(e)
		c.mu.Unlock()
		entry := e.Value.(*cached)
		<-entry.done
		return entry.comp, entry.err
	}
	c.stats.Misses++
	entry := &cached{hash: hash, req: shifted(req, 0), done: make(chan struct{})} // shifted makes a copy
	c.add(entry)
	c.mu.Unlock()

	finished := false
	defer func() {
		if !finished { // Optimize panicked: don't leave others waiting
			entry.err = errAbandoned
		}
		if entry.err != nil {
			c.mu.Lock()
			c.remove(entry)
			c.mu.Unlock()
		}
		close(entry.done)
	}()
	entry.comp, entry.err = c.compile(entry.req)
	finished = true
	return entry.comp, entry.err
}

func (c *Compiler) compile(req *computation.Request) (*computation.Computation, error) {
	comp, err := c.net.compile(context.Background(), []*computation.Request{req}, c.opts.Options)
	if err != nil || c.opts.Optimize == nil {
		return comp, err
	}
	return c.opts.Optimize(comp, req)
}

// Stats returns the counts so far.
func (c *Compiler) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Kept = c.recent.Len()
	return s
}

// lookUp returns the entry of a request, or nil.
func (c *Compiler) lookUp(hash uint64, req *computation.Request) *list.Element {
	for _, e := range c.entries[hash] {
		if e.Value.(*cached).req.Equal(req) {
			return e
		}
	}
	return nil
}

// add adds an entry and drops the least recently used ones if there are too many.
func (c *Compiler) add(entry *cached) {
	c.entries[entry.hash] = append(c.entries[entry.hash], c.recent.PushFront(entry))
	for c.recent.Len() > c.opts.capacity() {
		c.stats.Evicted++
		c.remove(c.recent.Back().Value.(*cached))
	}
}

// remove drops an entry if it is there. Goroutines that wait for it still get it.
func (c *Compiler) remove(entry *cached) {
	list := c.entries[entry.hash]
	for i, e := range list {
		if e.Value.(*cached) == entry {
			c.recent.Remove(e)
			c.entries[entry.hash] = slices.Delete(list, i, i+1)
			break
		}
	}
	if len(c.entries[entry.hash]) == 0 {
		delete(c.entries, entry.hash)
	}
}
