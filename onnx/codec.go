package onnx

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"strings"
	"sync/atomic"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/nnopt/nnopt/internal/fileio"
)

// ErrFormat means that a file is not a model in ONNX's format.
var ErrFormat = errors.New("onnx: not a model")

// A proto is a message. Its fields call the method of the codec for their type, in the order of
// their numbers, which is the order in which they are written.
type proto interface {
	fields(c *codec)
	own() *message
}

// message is the part that all messages have.
type message struct {
	// unknown has the fields that this package does not know, as they were encoded.
	unknown []byte
	// raw is the encoding that the message was read from, or nil. It is written again as long as the
	// fields have the hash that they had then, and the messages in it are the same and have not
	// changed either. So messages are changed by assignments, without a word to this package, and
	// encodings that we would not choose, such as fields in another order, stay as they are.
	raw []byte
	// merged means that there were several encodings, of which raw is the last: then it is written by
	// its fields, unless what it is in is written as it was.
	merged bool
	hash   uint64
	id     uint64 // of the message among all that were read; 0 if it was not read
	from   *files // that it was read from, or nil
}

func (m *message) own() *message { return m }

var (
	seed   = maphash.MakeSeed()
	lastID atomic.Uint64
)

// Limits of what is read.
const (
	maxDepth = 100 // of messages, as in protobuf itself
	// Messages take more memory than their encoding, which may be two bytes: those of a file may take
	// memoryFactor times its size, and minMemory more.
	minMemory    = 64 << 20
	memoryFactor = 8
)

// A codec reads or writes the fields of a message. One description of the fields serves both: for
// reading, fields is called once for each encoded field and the method with its number takes it.
type codec struct {
	// Reading.
	d     *decoder
	num   protowire.Number // of the field at hand; 0 for writing
	typ   protowire.Type
	num64 uint64 // its value, if it is a varint or of fixed size
	bytes []byte // its value, if it has a length
	taken bool

	// Writing.
	out *sink
}

// decoder is what a reading has in common.
type decoder struct {
	depth int
	left  int64 // bytes of memory
	from  *files
	read  []proto // all messages, each once
	err   error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// nameOf names a message in errors.
func nameOf(m proto) string {
	switch m := m.(type) {
	case *Node:
		return fmt.Sprintf("node %s (%s)", fileio.Excerpt(m.Name, 0), fileio.Excerpt(m.Op, 0))
	case *Tensor:
		return "tensor " + fileio.Excerpt(m.Name, 0)
	case *Attribute:
		return "attribute " + fileio.Excerpt(m.Name, 0)
	case *ValueInfo:
		return "value " + fileio.Excerpt(m.Name, 0)
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", m), "*onnx."))
}

// need takes memory from what is left.
func (d *decoder) need(n int) bool {
	if d.left -= int64(n); d.left < 0 {
		d.fail("it takes too much memory for a file of its size")
	}
	return d.err == nil
}

// decode reads a message. An error says in which message it is.
func (d *decoder) decode(m proto, raw []byte) {
	defer func() {
		if d.err != nil {
			d.err = fmt.Errorf("%s: %w", nameOf(m), d.err)
		}
	}()
	if d.depth++; d.depth > maxDepth {
		d.fail("messages are nested more than %d deep", maxDepth)
	}
	c := codec{d: d}
	own := m.own()
	for rest := raw; len(rest) > 0 && d.err == nil; {
		num, typ, n := protowire.ConsumeTag(rest)
		if n < 0 {
			d.fail("byte %d of %d: %v", len(raw)-len(rest), len(raw), protowire.ParseError(n))
			break
		}
		field := rest
		rest = rest[n:]
		c.num, c.typ, c.taken = num, typ, false
		switch typ {
		case protowire.VarintType:
			c.num64, n = protowire.ConsumeVarint(rest)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(rest)
			c.num64 = uint64(v)
		case protowire.Fixed64Type:
			c.num64, n = protowire.ConsumeFixed64(rest)
		case protowire.BytesType:
			c.bytes, n = protowire.ConsumeBytes(rest)
		default:
			n = protowire.ConsumeFieldValue(num, typ, rest)
		}
		if n < 0 {
			d.fail("field %d, byte %d of %d: %v", num, len(raw)-len(rest), len(raw), protowire.ParseError(n))
			break
		}
		rest = rest[n:]
		if m.fields(&c); !c.taken && d.need(len(field)-len(rest)) {
			own.unknown = append(own.unknown, field[:len(field)-len(rest)]...)
		}
	}
	d.depth--
	// A field with one message may be encoded twice. Readers of protobuf merge the two.
	if own.merged = own.id != 0; !own.merged && d.need(int(unsafe.Sizeof(m))) {
		own.id, own.from = lastID.Add(1), d.from
		d.read = append(d.read, m)
	}
	own.raw = raw[:len(raw):len(raw)]
}

// remember notes what the messages are that were read. This is done at the end, since a message that
// is merged of many encodings would take the square of their number in time.
func (d *decoder) remember() {
	if d.err == nil {
		for _, m := range d.read {
			m.own().hash = hashOf(m)
		}
	}
}

// hashOf returns a hash of a message's own fields, and of which messages it has.
func hashOf(m proto) uint64 {
	s := sink{mode: hashing}
	s.hash.SetSeed(seed)
	s.message(m)
	return s.hash.Sum64()
}

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

// is reports whether the field at hand is the one of a number, and marks it as taken.
func (c *codec) is(num protowire.Number, types ...protowire.Type) bool {
	if c.num != num {
		return false
	}
	for _, t := range types {
		if c.typ == t {
			c.taken = true
			return true
		}
	}
	c.d.fail("field %d is encoded as type %d", num, c.typ)
	return false
}

func (c *codec) reading() bool { return c.d != nil }

func (c *codec) string(num protowire.Number, v *string) {
	if c.reading() {
		if c.is(num, protowire.BytesType) && c.d.need(len(c.bytes)) {
			*v = string(c.bytes)
		}
	} else if *v != "" {
		c.out.tag(num, protowire.BytesType)
		c.out.varint(uint64(len(*v)))
		c.out.text(*v)
	}
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

func (c *codec) strings(num protowire.Number, v *[]string) {
	if c.reading() {
		if c.is(num, protowire.BytesType) && c.d.need(len(c.bytes)+32) {
			*v = append(*v, string(c.bytes))
		}
		return
	}
	for _, s := range *v {
		c.out.tag(num, protowire.BytesType)
		c.out.varint(uint64(len(s)))
		c.out.text(s)
	}
}

// data is a field of bytes, which are not copied. Nil is one that is not there.
func (c *codec) data(num protowire.Number, v *[]byte) {
	if c.reading() {
		if c.is(num, protowire.BytesType) {
			*v = c.bytes[:len(c.bytes):len(c.bytes)]
		}
	} else if *v != nil {
		c.out.data(num, *v)
	}
}

func (c *codec) datas(num protowire.Number, v *[][]byte) {
	if c.reading() {
		if c.is(num, protowire.BytesType) && c.d.need(48) {
			*v = append(*v, c.bytes[:len(c.bytes):len(c.bytes)])
		}
		return
	}
	for _, b := range *v {
		c.out.data(num, b)
	}
}

// integer is a field of an integer or an enumeration. Zero is written if always is true.
func integer[T ~int32 | ~int64](c *codec, num protowire.Number, v *T, always bool) {
	if c.reading() {
		if c.is(num, protowire.VarintType) {
			*v = T(c.num64)
		}
	} else if *v != 0 || always {
		c.out.tag(num, protowire.VarintType)
		c.out.varint(uint64(int64(*v)))
	}
}

// integers is a field of several integers, in one field if packed is true.
func integers[T int32 | int64 | uint64](c *codec, num protowire.Number, v *[]T, packed bool) {
	if !c.reading() {
		c.out.list(num, protowire.VarintType, len(*v), packed, func(i int) uint64 { return uint64((*v)[i]) })
		return
	}
	if c.num != num {
		return
	}
	if c.is(num, protowire.VarintType, protowire.BytesType); c.typ == protowire.VarintType {
		if c.d.need(8) {
			*v = append(*v, T(c.num64))
		}
		return
	}
	for b := c.bytes; len(b) > 0 && c.d.need(8); {
		x, n := protowire.ConsumeVarint(b)
		if n < 0 {
			c.d.fail("field %d: %v", num, protowire.ParseError(n))
			return
		}
		*v = append(*v, T(x))
		b = b[n:]
	}
}

// floats is a field of several floats, in one field if packed is true.
func (c *codec) floats(num protowire.Number, v *[]float32, packed bool) {
	if !c.reading() {
		c.out.list(num, protowire.Fixed32Type, len(*v), packed, func(i int) uint64 { return uint64(math.Float32bits((*v)[i])) })
		return
	}
	if c.num != num {
		return
	}
	if c.is(num, protowire.Fixed32Type, protowire.BytesType); c.typ == protowire.Fixed32Type {
		if c.d.need(4) {
			*v = append(*v, math.Float32frombits(uint32(c.num64)))
		}
		return
	}
	for b := c.bytes; len(b) > 0 && c.d.need(4); {
		x, n := protowire.ConsumeFixed32(b)
		if n < 0 {
			c.d.fail("field %d: %v", num, protowire.ParseError(n))
			return
		}
		*v = append(*v, math.Float32frombits(x))
		b = b[n:]
	}
}

// doubles is a packed field of float64s.
func (c *codec) doubles(num protowire.Number, v *[]float64) {
	if !c.reading() {
		c.out.list(num, protowire.Fixed64Type, len(*v), true, func(i int) uint64 { return math.Float64bits((*v)[i]) })
		return
	}
	if c.num != num {
		return
	}
	if c.is(num, protowire.Fixed64Type, protowire.BytesType); c.typ == protowire.Fixed64Type {
		if c.d.need(8) {
			*v = append(*v, math.Float64frombits(c.num64))
		}
		return
	}
	for b := c.bytes; len(b) > 0 && c.d.need(8); {
		x, n := protowire.ConsumeFixed64(b)
		if n < 0 {
			c.d.fail("field %d: %v", num, protowire.ParseError(n))
			return
		}
		*v = append(*v, math.Float64frombits(x))
		b = b[n:]
	}
}

// list encodes numbers: packed into one field, or each in a field.
func (s *sink) list(num protowire.Number, typ protowire.Type, n int, packed bool, at func(int) uint64) {
	if n == 0 {
		return
	}
	element := func(v uint64) {
		switch typ {
		case protowire.VarintType:
			s.varint(v)
		case protowire.Fixed32Type:
			s.buf = protowire.AppendFixed32(s.buf[:0], uint32(v))
			s.put(s.buf)
		default:
			s.buf = protowire.AppendFixed64(s.buf[:0], v)
			s.put(s.buf)
		}
	}
	if packed {
		size := 0
		switch typ {
		case protowire.VarintType:
			for i := range n {
				size += protowire.SizeVarint(at(i))
			}
		case protowire.Fixed32Type:
			size = 4 * n
		default:
			size = 8 * n
		}
		s.tag(num, protowire.BytesType)
		s.varint(uint64(size))
	}
	for i := range n {
		if !packed {
			s.tag(num, typ)
		}
		element(at(i))
	}
}

// one is a field with a message.
func one[M any, P interface {
	*M
	proto
}](c *codec, num protowire.Number, v *P) {
	if c.reading() {
		if c.is(num, protowire.BytesType) && c.d.need(int(unsafe.Sizeof(*new(M)))) {
			if *v == nil {
				*v = new(M)
			}
			c.d.decode(*v, c.bytes)
		}
		return
	}
	if *v != nil {
		c.out.sub(num, *v)
	}
}

// many is a field with several messages.
func many[M any, P interface {
	*M
	proto
}](c *codec, num protowire.Number, v *[]P) {
	if c.reading() {
		if c.is(num, protowire.BytesType) && c.d.need(int(unsafe.Sizeof(*new(M)))+16) {
			m := P(new(M))
			*v = append(*v, m)
			c.d.decode(m, c.bytes)
		}
		return
	}
	for _, m := range *v {
		c.out.sub(num, m)
	}
}

// float is a field of a float32. Zero is written if always is true.
func (c *codec) float(num protowire.Number, v *float32, always bool) {
	if c.reading() {
		if c.is(num, protowire.Fixed32Type) {
			*v = math.Float32frombits(uint32(c.num64))
		}
	} else if math.Float32bits(*v) != 0 || always {
		c.out.tag(num, protowire.Fixed32Type)
		c.out.buf = protowire.AppendFixed32(c.out.buf[:0], math.Float32bits(*v))
		c.out.put(c.out.buf)
	}
}

// number is a field of an integer that may be left out.
func (c *codec) number(num protowire.Number, v **int64) {
	if c.reading() {
		if c.is(num, protowire.VarintType) && c.d.need(8) {
			*v = new(int64(c.num64))
		}
	} else if *v != nil {
		c.out.tag(num, protowire.VarintType)
		c.out.varint(uint64(**v))
	}
}
