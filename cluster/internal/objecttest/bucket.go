// Package objecttest has an object store for tests, as unpleasant as object stores may be:
// operations fail, lists are late, and nothing can be renamed. Objects appear when all of them has
// been written.
package objecttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
)

// A Bucket is the file system of a scheme.
type Bucket struct {
	Faults int                     // how often each operation on an object fails before it succeeds
	Late   int                     // how many lists lack an object after it is written
	Full   func(name string) error // the error of writing an object; nil: none
	Seeks  bool                    // what OpenRead returns is an io.Seeker

	scheme  string
	mu      sync.Mutex
	objects map[string]*object
	failed  map[string]int // by operation and object
	read    int64          // bytes
	times   map[string]int // objects were written
}

type object struct {
	data     []byte
	modified time.Time
	unlisted int // lists that will lack it
}

// ErrFault is the error of operations that fail before they succeed.
var ErrFault = errors.New("the store is out of sorts")

// errNone is the error for an object that is not there. It says so in its own way.
var errNone = errors.New("404 NoSuchKey")

// New registers a bucket with Beam, for a scheme that is new.
func New(scheme string) *Bucket {
	b := &Bucket{scheme: scheme}
	b.Clear()
	filesystem.Register(scheme, func(context.Context) filesystem.Interface { return b })
	return b
}

// Clear removes everything, also faults.
func (b *Bucket) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Faults, b.Late, b.Full, b.Seeks, b.read = 0, 0, nil, false, 0
	b.objects, b.failed, b.times = make(map[string]*object), make(map[string]int), make(map[string]int)
}

// Put writes an object.
func (b *Bucket) Put(name string, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[name] = &object{data: data, modified: time.Now()}
}

// Get returns an object, nil if it is not there.
func (b *Bucket) Get(name string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o := b.objects[name]; o != nil {
		return o.data
	}
	return nil
}

// Names returns the sorted names of all objects that begin with a prefix.
func (b *Bucket) Names(prefix string) (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.objects {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Read returns the number of bytes that were read, and Failed that of operations that failed.
func (b *Bucket) Read() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read
}

// Failed returns the number of operations that failed.
func (b *Bucket) Failed() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, times := range b.failed {
		n += times
	}
	return n
}

// fault fails an operation on an object the first times.
func (b *Bucket) fault(what, name string) error {
	key := what + " " + name
	if b.failed[key] < b.Faults {
		b.failed[key]++
		return fmt.Errorf("%s: %w", what, ErrFault)
	}
	return nil
}

// List returns the names of objects that match a pattern.
func (b *Bucket) List(_ context.Context, glob string) (names []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.fault("list", glob); err != nil {
		return nil, err
	}
	for name, o := range b.objects {
		switch ok, err := path.Match(glob, name); {
		case err != nil:
			return nil, err
		case !ok:
		case b.Late > 0 && o.unlisted > 0:
			o.unlisted--
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// OpenRead opens an object. The first readers lose the connection in the middle.
func (b *Bucket) OpenRead(_ context.Context, name string) (io.ReadCloser, error) {
	return b.openAt(name, 0)
}

func (b *Bucket) openAt(name string, offset int64) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.objects[name]
	if o == nil {
		return nil, errNone
	}
	if err := b.fault("open", name); err != nil {
		return nil, err
	}
	r := &reading{b: b, Reader: bytes.NewReader(o.data[offset:])}
	if err := b.fault("read", name); err != nil {
		r.left, r.err = len(o.data)/2, err
	}
	if b.Seeks {
		return r, nil
	}
	return struct{ io.ReadCloser }{r}, nil
}

// reading reads an object, and loses the connection if there is an error.
type reading struct {
	*bytes.Reader
	b    *Bucket
	left int
	err  error
}

// WriteTo is not that of bytes.Reader, which knows no errors.
func (r *reading) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{r})
}

// Read reads until the connection is lost.
func (r *reading) Read(p []byte) (int, error) {
	if r.err != nil {
		if r.left == 0 {
			return 0, r.err
		}
		p = p[:min(len(p), r.left)]
	}
	n, err := r.Reader.Read(p)
	r.left -= n
	r.b.mu.Lock()
	r.b.read += int64(n)
	r.b.mu.Unlock()
	return n, err
}

// Close does nothing.
func (r *reading) Close() error { return nil }

// OpenWrite returns a writer whose object appears when it is closed, unless ctx is done then.
func (b *Bucket) OpenWrite(ctx context.Context, name string) (io.WriteCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.fault("create", name); err != nil {
		return nil, err
	}
	return &writing{ctx: ctx, b: b, name: name}, nil
}

type writing struct {
	ctx  context.Context
	b    *Bucket
	name string
	data []byte
}

// Write keeps bytes until the end, if it does not fail.
func (w *writing) Write(p []byte) (int, error) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	if w.b.Full != nil {
		if err := w.b.Full(w.name); err != nil {
			return 0, err
		}
	}
	if err := w.b.fault("write", w.name); err != nil {
		w.data = append(w.data, p[:len(p)/2]...)
		return len(p) / 2, err
	}
	w.data = append(w.data, p...)
	return len(p), nil
}

// Close makes the object.
func (w *writing) Close() error {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if err := w.b.fault("close", w.name); err != nil {
		return err
	}
	w.b.times[w.name]++
	w.b.objects[w.name] = &object{data: w.data, modified: time.Now(), unlisted: w.b.Late}
	return nil
}

// Size returns the number of bytes of an object.
func (b *Bucket) Size(_ context.Context, name string) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.objects[name]
	if o == nil {
		return -1, errNone
	}
	return int64(len(o.data)), b.fault("size", name)
}

// Remove removes an object.
func (b *Bucket) Remove(_ context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.fault("remove", name); err != nil {
		return err
	}
	if b.objects[name] == nil {
		return errNone
	}
	delete(b.objects, name)
	return nil
}

// Close does nothing.
func (b *Bucket) Close() error { return nil }

// Ranged is a Bucket that opens objects at an offset.
type Ranged struct{ *Bucket }

// NewRanged is New for a Ranged.
func NewRanged(scheme string) Ranged {
	r := Ranged{&Bucket{scheme: scheme}}
	r.Clear()
	filesystem.Register(scheme, func(context.Context) filesystem.Interface { return r })
	return r
}

// OpenRange opens an object at an offset.
func (r Ranged) OpenRange(_ context.Context, name string, offset int64) (io.ReadCloser, error) {
	return r.openAt(name, offset)
}
