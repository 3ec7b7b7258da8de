package onnx

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
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

// message is the part that all messages have. It is kept small: a file may have millions of messages, most
// of which have little else.
type message struct {
	// from is what the message was read from, or nil. Its encoding is there, size bytes from at on. It is
	// written again as long as the fields have the hash that they had then, and the messages in it are the
	// same and have not changed either. So callers change messages by assignments alone, and encodings that
	// this package would not choose, such as fields in another order, stay as they are.
	from     *source
	at, size uint32
	hash     uint64
}

// A source is what messages were read from. No two of its messages are at the same place, since there is a tag
// between the beginning of a message and that of one in it.
type source struct {
	data []byte
	odd  map[uint32]oddity // by the place of a message
	*files
}

// An oddity is what few messages have.
type oddity struct {
	// unknown has the fields that this package does not know, as they were encoded.
	unknown []byte
	// merged means that there were several encodings of the message, of which only the last is known. It is
	// then written by its fields, unless the message around it is written as it was.
	merged bool
}

func (m *message) own() *message { return m }

// odd returns what few messages have.
func (m *message) odd() oddity {
	if m.from == nil {
		return oddity{}
	}
	return m.from.odd[m.at]
}

// files returns the files that the message was read from, nil if there are none.
func (m *message) files() *files {
	if m.from == nil {
		return nil
	}
	return m.from.files
}

// encoding returns what the message was read from last.
func (m *message) encoding() []byte { return m.from.data[m.at:][:m.size:m.size] }

var seed = maphash.MakeSeed()

// Limits of what is read.
const (
	maxDepth = 100 // of messages, as in protobuf itself
	// Messages take more memory than their encoding, which may be two bytes: those of a file may take
	// memoryFactor times its size, and minMemory more. Many small nodes or outputs take up to 27 times their
	// encoding (28 November 2026: 100,000 of each, Ifs among them), so up to smallMemory they may take smallFactor times.
	minMemory    = 64 << 20
	memoryFactor = 8
	smallMemory  = 512 << 20
	smallFactor  = 40
)

// memoryFor returns how many bytes of memory the messages of a file of a size may take.
func memoryFor(size int64) int64 {
	return minMemory + max(memoryFactor*size, min(smallFactor*size, smallMemory))
}

// A codec reads or writes the fields of a message. One description of the fields serves both: for
// reading, fields is called once for each encoded field and the method with its number takes it.
type codec struct {
	// Reading.
	d     *decoder
	num   protowire.Number // of the field at hand; 0 for writing
	typ   protowire.Type
	num64 uint64 // its value, if it is a varint or of fixed size
	bytes []byte // its value, if it has a length
	at    int    // where that is in the source
	taken bool

	// Writing.
	out *sink
}

// decoder is what a reading has in common.
type decoder struct {
	depth int
	left  int64 // bytes of memory
	from  *source
	types map[string]*Type // by their encodings, see sharedType
	// codecs are those of the message at hand and of those around it, by depth.
	codecs [maxDepth + 2]codec
	err    error
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

// decode reads a message, whose encoding is at a place of the source. An error says in which message it is.
func (d *decoder) decode(m proto, raw []byte, at int) {
	defer func() {
		if d.err != nil {
			d.err = fmt.Errorf("%s: %w", nameOf(m), d.err)
		}
	}()
	if d.depth++; d.depth > maxDepth {
		d.fail("messages are nested more than %d deep", maxDepth)
	}
	// Each depth has a codec of its own, since the one of the message around is still in use. A local
	// one would escape through the interface, once for each of millions of messages.
	c, own := &d.codecs[d.depth], m.own()
	*c = codec{d: d}
	// A field with one message may be encoded twice. Readers of protobuf merge the two, and the place is now the last.
	odd := own.odd()
	if odd.merged = own.from != nil; odd.merged {
		delete(d.from.odd, own.at)
	}
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
			// A group, which no field of ONNX is: only its length counts, and it is kept as unknown.
			n = protowire.ConsumeFieldValue(num, typ, rest)
		}
		if n < 0 {
			d.fail("field %d, byte %d of %d: %v", num, len(raw)-len(rest), len(raw), protowire.ParseError(n))
			break
		}
		rest = rest[n:]
		c.at = at + len(raw) - len(rest) - len(c.bytes)
		// Fields of a newer version of ONNX are kept as bytes, so that writing the model loses nothing.
		if m.fields(c); !c.taken && d.need(len(field)-len(rest)) {
			odd.unknown = append(odd.unknown, field[:len(field)-len(rest)]...)
		}
	}
	d.depth--
	own.from, own.at, own.size = d.from, uint32(at), uint32(len(raw))
	if (odd.merged || odd.unknown != nil) && d.need(2*int(unsafe.Sizeof(odd))) { // a map has room for more
		d.from.odd[own.at] = odd
	}
}

// remember notes the hashes of a message that was read and of those in it. It does so at the end: to hash a message
// each time that another encoding is merged into it would take quadratic time.
func remember(m proto) {
	todo := []proto{m}
	h := newHasher(func(child proto) {
		if child.own().hash == 0 { // a type may be in several places
			todo = append(todo, child)
		}
	})
	for len(todo) > 0 {
		m := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		m.own().hash = h.hashOf(m)
	}
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
