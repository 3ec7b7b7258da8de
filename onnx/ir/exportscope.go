package ir

import (
	"slices"
	"strconv"
)

// A region is a graph of the file. Graphs see the names of those around them, so a name is taken there if it is in a
// graph around it or in one of those inside. Two graphs that don't see each other may have the same names, and models
// have them.

type scopedName struct {
	name string
	in   *Region
}

// holders are the graphs that have a name: most names are in one of them, and some in one of very many branches each.
type holders struct {
	one *Region
	all map[*Region]bool // false for graphs around those; nil if there is only one
}

// sees reports whether a scope is one of the holders, or around one or in one.
func (h holders) sees(s *Region) bool {
	if h.all == nil {
		return h.one.contains(s) || s.contains(h.one)
	}
	_, has := h.all[s]
	for ; s != nil && !has; s = s.outer {
		has = h.all[s]
	}
	return has
}

func (h holders) add(s *Region) {
	h.all[s] = true
	for s = s.outer; s != nil; s = s.outer {
		if _, known := h.all[s]; !known {
			h.all[s] = false
		}
	}
}

// isFree reports whether a name can be given in all scopes of a list.
func (e *exporter) isFree(name string, scopes ...*Region) bool {
	h, taken := e.taken[name]
	return !taken || !slices.ContainsFunc(scopes, h.sees)
}

// take takes a name.
func (e *exporter) take(name string, scopes ...*Region) string {
	for _, s := range scopes {
		h, taken := e.taken[name]
		switch {
		case !taken:
			h.one = s
		case h.all == nil:
			h.all = make(map[*Region]bool)
			h.add(h.one)
		}
		if taken {
			h.add(s)
		}
		e.taken[name] = h
	}
	return name
}

// fresh takes a name that is free: base, or else base with a number, which is no name that another value
// would like to have.
func (e *exporter) fresh(base string, scopes ...*Region) string {
	if e.isFree(base, scopes...) {
		return e.take(base, scopes...)
	}
	// What is not free once never is, so only one scope counts from where it ended.
	n, key, name := 0, scopedName{base, scopes[0]}, base
	if len(scopes) == 1 {
		n = e.numbered[key]
	}
	for name == base || !e.isFree(name, scopes...) || e.hints[name] {
		n++
		name = base + "_" + strconv.Itoa(n)
	}
	if len(scopes) == 1 {
		e.numbered[key] = n
	}
	return e.take(name, scopes...)
}
