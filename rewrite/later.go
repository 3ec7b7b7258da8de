package rewrite

import (
	"sync"
	"sync/atomic"

	"github.com/nnopt/nnopt/fgraph"
)

// Later returns a node rewriter that is made when it is first needed, by one call of make. So a
// program may know thousands of rules and pay for those that it uses. outline is what [Outline] says
// about the rewriter until then: at least its name and documentation, and whether it destroys
// inputs.
//
// Rules are made one by one, and not all of a dialect at once, because most runs meet the ops of a
// few: to make the 240 of the standard database takes 12 ms, and to build the optimizer of a query 2.
func Later(outline Description, make func() NodeRewriter) NodeRewriter {
	l := &later{outline: outline}
	if make == nil {
		return l // which Check refuses
	}
	l.get = sync.OnceValue(func() NodeRewriter {
		defer l.made.Store(true)
		return makeRule(make)
	})
	return l
}

// makeRule calls make. If it panics, each later call panics as well, by which the place is lost: so it
// is found now.
func makeRule(make func() NodeRewriter) NodeRewriter {
	defer func() {
		if p := recover(); p != nil {
			panic(newPanic(p))
		}
	}()
	return make()
}

// An Outliner is a rewriter that knows its outline without being made, see [Later].
type Outliner interface {
	// Outline returns the description as far as it is known.
	Outline() Description
}

// Outline is like [Describe] for those who need only the name, the documentation, the reason, and
// whether the rewriter destroys inputs. It makes no rewriter of [Later].
func Outline(rewriter any) Description {
	if r, ok := rewriter.(Outliner); ok {
		return r.Outline()
	}
	return Describe(rewriter)
}

// Made reports whether a rewriter is complete: it is no rewriter of [Later] that has not been needed
// yet.
func Made(r NodeRewriter) bool {
	for {
		d, ok := r.(described)
		if !ok {
			break
		}
		r = d.NodeRewriter
	}
	l, ok := r.(*later)
	return !ok || l.made.Load()
}

type later struct {
	outline Description
	made    atomic.Bool
	get     func() NodeRewriter // if making the rewriter panics, so does each call
}

func (l *later) Outline() Description  { return l.outline }
func (l *later) Describe() Description { return Describe(l.get()) }
func (l *later) Tracks() []Track       { return l.get().Tracks() }

func (l *later) Transform(c *Context, a *fgraph.Apply) (Result, error) {
	return l.get().Transform(c, a)
}
