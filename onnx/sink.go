package onnx

import (
	"fmt"
	"hash/maphash"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// A mode is what a sink does with the encoding of a message.
type mode uint8

const (
	hashing mode = iota
	counting
	writing
)

// A sink takes the encoding of a message.
type sink struct {
	mode  mode
	hash  maphash.Hash
	visit func(proto)  // the messages in it, for hashing
	n     int64        // bytes counted
	write func([]byte) // bytes written
	w     *writer      // for counting and writing
	buf   []byte
	codec codec
}

func newHasher(visit func(proto)) *sink {
	s := &sink{mode: hashing, visit: visit}
	s.hash.SetSeed(seed)
	return s
}

// hashOf returns a hash of a message's own fields, and of which messages it has.
func (s *sink) hashOf(m proto) uint64 {
	s.hash.Reset()
	s.message(m)
	return s.hash.Sum64()
}

func (s *sink) put(b []byte) {
	switch s.mode {
	case hashing:
		s.hash.Write(b)
	case counting:
		s.n += int64(len(b))
	case writing:
		s.write(b)
	}
}

// message encodes a message by its fields.
func (s *sink) message(m proto) {
	s.codec.out = s
	m.fields(&s.codec)
	s.put(m.own().odd().unknown)
}

// sub encodes a field with a message.
func (s *sink) sub(num protowire.Number, m proto) {
	switch s.mode {
	case hashing:
		// Where a message was read stands for what is in it, so a hash costs only a message's own
		// fields. Whether something within has changed is asked of each message itself.
		s.tag(num, protowire.BytesType)
		own := m.own()
		s.buf = protowire.AppendFixed64(s.buf[:0], uint64(uintptr(unsafe.Pointer(own.from))))
		s.buf = protowire.AppendFixed32(s.buf, own.at)
		s.put(s.buf)
		s.visit(m)
	default:
		// A length stands in front of its message, so it has to be known before the first byte.
		p := s.w.plan(m)
		s.tag(num, protowire.BytesType)
		s.varint(uint64(p.size))
		if s.mode == counting {
			s.n += p.size
		} else {
			s.w.message(m, p)
		}
	}
}

// A writer writes messages.
type writer struct {
	plans map[*message]plan
	moved map[*Tensor]*Tensor // those that others are written for
	depth int
	err   error

	tensors []*Tensor        // in the order in which they are written
	inits   map[*Tensor]bool // initializers of graphs
	sources map[*files]bool  // what messages were read from

	hasher       *sink
	inner        []proto // the messages in those that are being planned, which hasher met
	pending      []plan  // of the first of inner, in each of those
	counter, out sink
}

func newWriter(moved map[*Tensor]*Tensor) *writer {
	w := &writer{plans: make(map[*message]plan), moved: moved, inits: make(map[*Tensor]bool), sources: make(map[*files]bool)}
	w.hasher = newHasher(func(m proto) { w.inner = append(w.inner, m) })
	w.counter, w.out = sink{mode: counting, w: w}, sink{mode: writing, w: w}
	return w
}

// written returns the message that is written for m.
func (w *writer) written(m proto) proto {
	if t, ok := m.(*Tensor); ok {
		if other := w.moved[t]; other != nil {
			return other
		}
	}
	return m
}

// A plan says how a message is written. Each is made once: the length of a message is needed by all
// that it is nested in. What is in a message that is written as it was read is written with it, so
// those plans are not kept.
type plan struct {
	same bool // as it was read
	size int64
}

// all plans a message that is in no other.
func (w *writer) all(m proto) plan {
	p := w.plan(m)
	w.plans[m.own()] = p
	return p
}

// plan returns how a message is written.
func (w *writer) plan(m proto) plan {
	if p, ok := w.plans[w.written(m).own()]; ok {
		return p
	}
	return w.planNew(m)
}

// planNew is plan for a message that most likely has none yet.
func (w *writer) planNew(m proto) plan {
	m = w.written(m)
	own := m.own()
	// No message of a file holds itself, but one that a program made may, and has no length.
	if w.depth++; w.depth > maxDepth && w.err == nil {
		w.err = fmt.Errorf("onnx: messages are nested more than %d deep", maxDepth)
	}
	if err := own.files().use(); err != nil && w.err == nil {
		w.err = err
	}
	w.note(m)
	var p plan
	if first := len(w.inner); w.err == nil {
		// The hash covers this message alone, so it is as it was read only if all in it are.
		hash := w.hasher.hashOf(m)
		last, plans := len(w.inner), len(w.pending)
		p.same = own.from != nil && hash == own.hash
		// To look for a plan in a large table takes longer than to make one, as long as messages are a tree. Those
		// that a program made may have others twice, which have others twice.
		if !p.same {
			if known, ok := w.plans[own]; ok {
				w.inner, w.depth = w.inner[:first], w.depth-1
				return known
			}
		}
		for i := first; i < last; i++ {
			child := w.planNew(w.inner[i])
			w.pending = append(w.pending, child)
			p.same = child.same && p.same
		}
		if !p.same || own.odd().merged {
			for i, child := range w.pending[plans:] {
				w.plans[w.written(w.inner[first+i]).own()] = child
			}
		}
		w.inner, w.pending = w.inner[:first], w.pending[:plans]
	}
	if p.same && !own.odd().merged {
		p.size = int64(own.size)
	} else if w.err == nil {
		w.counter.n = 0
		w.counter.message(m)
		p.size = w.counter.n
	}
	w.depth--
	return p
}

// note notes what a layout asks for.
func (w *writer) note(m proto) {
	if from := m.own().files(); from != nil {
		w.sources[from] = true
	}
	switch m := m.(type) {
	case *Tensor:
		w.tensors = append(w.tensors, m)
	case *Graph:
		for _, t := range m.Initializers {
			w.inits[t] = true
		}
	}
}

// message writes a message as planned.
func (w *writer) message(m proto, p plan) {
	m = w.written(m)
	if own := m.own(); p.same && !own.odd().merged {
		w.out.put(own.encoding())
		return
	}
	w.out.message(m)
}

func (s *sink) tag(num protowire.Number, typ protowire.Type) {
	s.buf = protowire.AppendTag(s.buf[:0], num, typ)
	s.put(s.buf)
}

func (s *sink) varint(v uint64) {
	s.buf = protowire.AppendVarint(s.buf[:0], v)
	s.put(s.buf)
}

// data encodes a field of bytes. A hash is of where they are: weights are large, and must not change
// in place.
func (s *sink) data(num protowire.Number, b []byte) {
	s.tag(num, protowire.BytesType)
	s.varint(uint64(len(b)))
	if s.mode == hashing {
		s.buf = protowire.AppendFixed64(s.buf[:0], uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))))
		b = s.buf
	}
	s.put(b)
}

// text is put for a string, in pieces so that nothing is allocated.
func (s *sink) text(v string) {
	for len(v) > 0 {
		n := min(len(v), 512)
		s.buf = append(s.buf[:0], v[:n]...)
		s.put(s.buf)
		v = v[n:]
	}
}
