package onnx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx/internal/limit"
)

const (
	// minMoved is the size of a tensor from which on it is moved out of a model that is too large. So
	// small ones, such as shapes, stay where tools look for them without reading another file.
	minMoved = 1 << 10
	// Elements begin at multiples of these in a file of external data: tensors from page on at pages,
	// so that they can be mapped alone, as ONNX recommends; all others at lines of a cache.
	pageAlign, lineAlign = 4 << 10, 64
)

// ErrTooLarge means that a model has more than 2 GiB without the weights that can be written to another
// file, so that other programs could not read it.
var ErrTooLarge = errors.New("onnx: the model is too large")

// WriteFile writes a model to a file, which is complete or stays as it was. It may be the file that
// the model was read from.
//
// Where nothing has changed since the model was read, the bytes are the same. External data stay where
// they are if the file is in the folder that the model was read from. In another folder there is a
// second file for them, with the extension .data added to the name of the first one; all are copied
// into it, in the order of the tensors and piece by piece, never as a whole in memory. Initializers
// of a changed model that has more than 2 GiB with them, which is the most that others read, are
// written there, too. The second file is complete before the first one refers to it, and replaces one
// with its name, but none of those that the model refers to.
//
// A model that was not read by [ReadFile] has no folder: it refers to external data as before.
func (m *Model) WriteFile(ctx context.Context, name string) error {
	l := &layout{name: name, moved: make(map[*Tensor]*Tensor), at: make(map[any]int64), here: make(map[*files]bool), inUse: make(map[string]bool)}
	if err := l.plan(m, limit.Model()); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	replace := fileio.Write
	if l.overwrites(name) {
		replace = fileio.Replace // the file is mapped, and must not change
	}
	return replace(ctx, name, func(w io.Writer) error {
		if err := l.writer.write(w, m); err != nil || len(l.pieces) == 0 {
			return err
		}
		// The model is in a temporary file now, and gets its name when the data are complete.
		return fileio.Replace(ctx, filepath.Join(filepath.Dir(name), l.data), l.writeData)
	})
}

// A layout says which elements are written to a file beside the model.
type layout struct {
	name string // of the model
	data string // of the other file, in the same folder

	moved  map[*Tensor]*Tensor // what is written in place of a tensor
	pieces []piece
	end    int64           // of the pieces
	writer *writer         // which knows the sizes of all messages, and what is in the model
	at     map[any]int64   // where elements are: by their origin if they are external
	here   map[*files]bool // whether models are in the folder of the new one
	inUse  map[string]bool // names in that folder that the model refers to
}

// A piece is the elements of a tensor at a place of the file.
type piece struct {
	at, size int64
	tensor   *Tensor
}

// An origin is a part of a file. Tensors that share it do so in what is written, too.
type origin struct {
	from *files
	reference
}

func (l *layout) plan(m *Model, limit int64) error {
	p, err := l.measure(m)
	if err != nil {
		return err
	}
	var away []*Tensor
	for _, t := range l.writer.tensors {
		switch {
		case t.Location != LocationExternal:
		case t.files() != nil && !l.isHere(t.files()):
			away = append(away, t)
		default:
			for _, e := range t.External {
				if e.Key == "location" {
					l.inUse[filepath.Clean(filepath.FromSlash(e.Value))] = true
				}
			}
		}
	}
	l.data = filepath.Base(l.name) + ".data"
	// Tensors that stay where they are still read files of the folder, so none of those may be replaced.
	for k := 1; l.inUse[l.data] || l.overwrites(filepath.Join(filepath.Dir(l.name), l.data)); k++ {
		l.data = fmt.Sprintf("%s.%d.data", filepath.Base(l.name), k)
	}
	for _, t := range away {
		if err := l.move(t); err != nil {
			return err
		}
	}
	// Tensors that are moved have other entries, and so other sizes.
	if len(away) > 0 {
		if p, err = l.measure(m); err != nil {
			return err
		}
	}
	if p.size > limit && !p.same { // what was read is written as it was
		if err := l.shrink(m, limit); err != nil {
			return err
		}
	}
	// The folder of a device or a pipe is no place for data.
	if info, err := os.Stat(l.name); len(l.pieces) > 0 && err == nil && !info.Mode().IsRegular() {
		return errors.New("it is no regular file, beside which external data could be written")
	}
	return nil
}

func (l *layout) isHere(f *files) bool {
	here, ok := l.here[f]
	if !ok {
		a, errA := os.Stat(f.folder)
		b, errB := os.Stat(filepath.Dir(l.name))
		here = errA == nil && errB == nil && os.SameFile(a, b)
		l.here[f] = here
	}
	return here
}

// measure plans how the messages are written, with the tensors that have been moved so far: the sizes of all messages
// around one change.
func (l *layout) measure(m *Model) (plan, error) {
	old := l.writer
	l.writer = newWriter(l.moved)
	p := l.writer.all(m)
	if old != nil { // moved tensors are others
		l.writer.tensors, l.writer.inits = old.tensors, old.inits
	}
	return p, l.writer.err
}

// shrink moves initializers, since the model is too large with them.
func (l *layout) shrink(m *Model, limit int64) error {
	for _, t := range l.writer.tensors {
		if _, size, err := t.extent(); err != nil || size < minMoved || !l.writer.inits[t] || t.Location == LocationExternal {
			continue
		}
		if err := l.move(t); err != nil {
			return err
		}
	}
	p, err := l.measure(m)
	if err == nil && p.size > limit {
		return fmt.Errorf("%w: %d bytes without its initializers", ErrTooLarge, p.size)
	}
	return err
}

// move gives a tensor a place in the file.
func (l *layout) move(t *Tensor) error {
	_, size, err := t.extent()
	if err != nil {
		return t.named(err)
	}
	var key any = t
	if t.Location == LocationExternal {
		r, err := t.reference(size)
		// The file is opened now, so that one which is missing is found before anything is written.
		if err == nil {
			_, err = t.files().file(r)
		}
		if err != nil {
			return t.named(err)
		}
		key = origin{t.files(), r}
	}
	at, ok := l.at[key]
	if !ok {
		align := int64(lineAlign)
		if size >= pageAlign {
			align = pageAlign
		}
		at = (l.end + align - 1) / align * align
		l.at[key], l.end = at, at+size
		l.pieces = append(l.pieces, piece{at, size, t})
	}
	l.moved[t] = t.movedTo(l.data, at, size)
	return nil
}

// movedTo returns the tensor with its elements at a place of another file. What else the tensor says
// is kept, except for a checksum, which is that of the old file.
func (m *Tensor) movedTo(location string, at, size int64) *Tensor {
	moved := *m
	moved.clear()
	moved.Location = LocationExternal
	for _, e := range m.External {
		switch e.Key {
		case "location", "offset", "length", "checksum":
		default:
			moved.External = append(moved.External, e)
		}
	}
	moved.External = append(moved.External, &Entry{Key: "location", Value: location},
		&Entry{Key: "offset", Value: strconv.FormatInt(at, 10)}, &Entry{Key: "length", Value: strconv.FormatInt(size, 10)})
	return &moved
}

// overwrites reports whether a name is that of a file that some of the model was read from.
func (l *layout) overwrites(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		return false
	}
	for f := range l.writer.sources {
		if f.has(info) {
			return true
		}
	}
	return false
}

// writeData writes the file with the elements.
func (l *layout) writeData(w io.Writer) error {
	end, buf := int64(0), make([]byte, 1<<20)
	for _, p := range l.pieces {
		if _, err := w.Write(make([]byte, p.at-end)); err != nil {
			return err
		}
		if err := p.write(w, buf); err != nil {
			return p.tensor.named(err)
		}
		end = p.at + p.size
	}
	return nil
}

// write writes elements. Those in a file are copied without mapping it, since what has been looked at
// through a mapping counts as memory of this program.
func (p piece) write(w io.Writer, buf []byte) error {
	t := p.tensor
	if t.Location != LocationExternal {
		data, err := t.data("")
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	r, err := t.reference(p.size)
	if err != nil {
		return err
	}
	f, err := t.files().file(r)
	if err != nil {
		return err
	}
	// Without its other methods, a reader gets the buffer and can't take one of its own.
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{io.NewSectionReader(f, r.offset, p.size)}, buf)
	if err == nil && n < p.size {
		err = io.ErrUnexpectedEOF
	}
	return err
}
