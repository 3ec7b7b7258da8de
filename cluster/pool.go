package cluster

import "sync"

// A pool has what users in a process share, by keys. Runners make many instances of a DoFn, and a
// model must not be loaded for each.
type pool[M any] struct {
	mu   sync.Mutex
	held map[string]*held[M]
}

type held[M any] struct {
	value M
	users int
}

// acquire returns what make returns for a key, or has returned for other users of the key. The last
// of them to release it has it dropped. Whoever comes while it is made waits: several shards begin at
// a time.
func (p *pool[M]) acquire(key string, make func() (M, error), drop func(M)) (m M, release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[key]
	if h == nil {
		h = new(held[M])
		if h.value, err = make(); err != nil {
			return m, nil, err
		}
		if p.held == nil {
			p.held = map[string]*held[M]{}
		}
		p.held[key] = h
	}
	h.users++
	return h.value, sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(p.held, key)
			drop(h.value)
		}
	}), nil
}
