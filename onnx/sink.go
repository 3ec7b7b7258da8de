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
	visiting
	counting
	writing
)

// A sink takes the encoding of a message.
type sink struct {
	mode  mode
	hash  maphash.Hash
	visit func(proto)  // the messages in it
	n     int64        // bytes counted
	write func([]byte) // bytes written
	w     *writer      // for counting and writing
	buf   []byte
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
	m.fields(&codec{out: s})
	s.put(m.own().unknown)
}

// sub encodes a field with a message.
func (s *sink) sub(num protowire.Number, m proto) {
	switch s.mode {
	case hashing:
		s.tag(num, protowire.BytesType)
		s.buf = protowire.AppendFixed64(s.buf[:0], m.own().id)
		s.put(s.buf)
	case visiting:
		s.visit(m)
	default:
		size := s.w.plan(m).size
		s.tag(num, protowire.BytesType)
		s.varint(uint64(size))
		if s.mode == counting {
			s.n += size
		} else {
			s.w.message(m)
		}
	}
}

// A writer writes messages.
type writer struct {
	plans map[*message]plan
	moved map[*Tensor]*Tensor // those that others are written for
	depth int
	put   func([]byte)
	err   error
}

func newWriter(moved map[*Tensor]*Tensor) *writer {
	return &writer{plans: make(map[*message]plan), moved: moved}
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
// that it is nested in.
type plan struct {
	same bool // as it was read
	size int64
}

// plan returns how a message is written.
func (w *writer) plan(m proto) plan {
	m = w.written(m)
	own := m.own()
	if p, ok := w.plans[own]; ok {
		return p
	}
	if w.depth++; w.depth > maxDepth && w.err == nil {
		w.err = fmt.Errorf("onnx: messages are nested more than %d deep", maxDepth)
	}
	if err := own.from.use(); err != nil && w.err == nil {
		w.err = err
	}
	p := plan{same: w.err == nil && own.raw != nil && hashOf(m) == own.hash}
	if w.err == nil {
		visitor := sink{mode: visiting, visit: func(child proto) { p.same = w.plan(child).same && p.same }}
		visitor.message(m)
	}
	if p.same && !own.merged {
		p.size = int64(len(own.raw))
	} else if w.err == nil {
		counter := sink{mode: counting, w: w}
		counter.message(m)
		p.size = counter.n
	}
	w.depth--
	w.plans[own] = p
	return p
}

// message writes a message.
func (w *writer) message(m proto) {
	m = w.written(m)
	if own := m.own(); w.plan(m).same && !own.merged {
		w.put(own.raw)
		return
	}
	s := sink{mode: writing, write: w.put, w: w}
	s.message(m)
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
