package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/nnopt/nnopt/internal/fileio"
)

var errClosed = fmt.Errorf("onnx: the model is closed: %w", fs.ErrClosed)

// The files of a model are the one that it was read from, and those in the same folder that have its
// external data. They are opened when a tensor is asked for its elements.
type files struct {
	folder string
	model  *fileio.Mapping
	info   fs.FileInfo // of the file of the model

	mu     sync.Mutex
	data   map[string]*dataFile // by clean name
	closed atomic.Bool
}

// A dataFile is a file with external data. It stays open, so that its tensors are parts of one file
// even if another one gets its name.
type dataFile struct {
	f       *os.File
	info    fs.FileInfo
	mapping *fileio.Mapping // nil until somebody asks for elements
}

// A reference says where the elements of a tensor are: at bytes of a file, by its clean name.
type reference struct {
	name         string
	offset, size int64
}

// reference returns where the elements of a tensor are, which take size bytes. A model may come from
// anywhere, so it must not name a file outside of its folder.
func (m *Tensor) reference(size int64) (reference, error) {
	r := reference{size: size}
	location := ""
	for _, e := range m.External {
		var err error
		switch e.Key {
		case "location":
			location = e.Value
		case "offset":
			r.offset, err = strconv.ParseInt(e.Value, 10, 64)
		case "length":
			var length int64
			if length, err = strconv.ParseInt(e.Value, 10, 64); err == nil && length != size {
				return r, fmt.Errorf("%w: %d bytes of external data, want %d", ErrTensor, length, size)
			}
		}
		if err != nil || r.offset < 0 {
			return r, fmt.Errorf("%w: %s of external data is %q", ErrTensor, e.Key, fileio.Excerpt(e.Value, 0))
		}
	}
	if r.name = filepath.FromSlash(location); !filepath.IsLocal(r.name) {
		return r, fmt.Errorf("%w: external data in %q, which is not below the folder of the model", ErrTensor, fileio.Excerpt(location, 0))
	}
	r.name = filepath.Clean(r.name)
	return r, nil
}

// fits returns an error if a file has not the bytes that a reference asks for. This is asked before
// memory is taken for what a model promises.
func (r reference) fits(bytes int64) error {
	// Not the sum of offset and size, which may overflow: the model says both.
	if r.size > bytes-r.offset {
		return fmt.Errorf("%w: %s has no %d bytes from byte %d on", ErrTensor, fileio.Excerpt(r.name, 0), r.size, r.offset)
	}
	return nil
}

// external returns elements that are in another file, of the folder dir or, if it is empty, of the
// folder of the model that m was read from.
func (m *Tensor) external(dir string, size int64) ([]byte, error) {
	r, err := m.reference(size)
	if err != nil {
		return nil, err
	}
	if f := m.files(); f != nil && (dir == "" || folderOf(filepath.Join(dir, "model")) == f.folder) {
		return f.bytes(r)
	}
	if dir == "" {
		return nil, fmt.Errorf("%w: external data of a model that was not read from a file", ErrTensor)
	}
	// No model owns this tensor, so nothing could unmap a file later: the elements are read.
	file, err := openData(dir, r)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		err = r.fits(info.Size())
	}
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	_, err = file.ReadAt(data, r.offset)
	return data, err
}

// openData opens a file with external data.
func openData(dir string, r reference) (*os.File, error) {
	f, err := fileio.OpenWithin(dir, r.name)
	if err != nil {
		return nil, fmt.Errorf("%w: external data: %w", ErrTensor, err)
	}
	// A repository that was cloned without Git LFS has small texts in place of weights. Saying so helps
	// more than that bytes are missing.
	var head [64]byte
	n, _ := f.ReadAt(head[:], 0)
	if err := r.check(head[:n]); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// check returns an error if a file that begins so has no data.
func (r reference) check(head []byte) error {
	if err := fileio.CheckLFS(head); err != nil {
		return fmt.Errorf("%w: external data: %s: %w", ErrTensor, fileio.Excerpt(r.name, 0), err)
	}
	return nil
}

// readFrom gives a tensor the elements that are in another file of a file system, below the folder dir. read has the
// files that were read, and gets another one.
func (m *Tensor) readFrom(fsys fs.FS, dir string, read map[string][]byte) error {
	_, size, err := m.extent()
	if err != nil {
		return err
	}
	r, err := m.reference(size)
	if err != nil {
		return err
	}
	data, ok := read[r.name]
	if !ok {
		if data, err = fs.ReadFile(fsys, path.Join(dir, filepath.ToSlash(r.name))); err != nil {
			return fmt.Errorf("%w: external data: %w", ErrTensor, err)
		}
		if err := r.check(data[:min(len(data), 64)]); err != nil {
			return err
		}
		read[r.name] = data
	}
	if err := r.fits(int64(len(data))); err != nil {
		return err
	}
	return m.SetData(data[r.offset:][:size:size])
}

// bytes returns a part of a file, which is mapped for it.
func (f *files) bytes(r reference) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.open(r)
	if err != nil {
		return nil, err
	}
	if d.mapping == nil {
		if d.mapping, err = fileio.Map(d.f); err != nil {
			return nil, err
		}
	}
	data, end := d.mapping.Bytes(), r.offset+r.size // which the size of the file bounds
	// The size was asked when the file was opened; it is mapped later, and may have been cut since.
	if int64(len(data)) < end {
		return nil, fmt.Errorf("%w: %s has become shorter", ErrTensor, fileio.Excerpt(r.name, 0))
	}
	return data[r.offset:end:end], nil
}

// forget gives memory of the files back to the system.
func (f *files) forget(data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed.Load() {
		return errClosed
	}
	var errs []error
	each := func(m *fileio.Mapping) {
		if m == nil {
			return
		}
		part := data
		if part == nil {
			part = m.Bytes()
		}
		errs = append(errs, m.Forget(part))
	}
	each(f.model)
	for _, d := range f.data {
		each(d.mapping)
	}
	return errors.Join(errs...)
}

// file returns an open file that has the bytes of a reference.
func (f *files) file(r reference) (*os.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.open(r)
	if err != nil {
		return nil, err
	}
	return d.f, nil
}

// open returns the file of a reference. The caller holds the lock.
func (f *files) open(r reference) (*dataFile, error) {
	if f.closed.Load() {
		return nil, errClosed
	}
	d := f.data[r.name]
	if d == nil {
		file, err := openData(f.folder, r)
		if err != nil {
			return nil, err
		}
		info, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		d = &dataFile{f: file, info: info}
		f.data[r.name] = d
	}
	return d, r.fits(d.info.Size())
}

// has reports whether a file is one of these.
func (f *files) has(info fs.FileInfo) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if os.SameFile(info, f.info) {
		return true
	}
	for _, d := range f.data {
		if os.SameFile(info, d.info) {
			return true
		}
	}
	return false
}

// use returns an error if what is read from f may not be used any more. f may be nil.
func (f *files) use() error {
	if f != nil && f.closed.Load() {
		return errClosed
	}
	return nil
}

func (f *files) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed.Swap(true) {
		return nil
	}
	err := f.model.Close()
	for _, d := range f.data {
		if d.mapping != nil {
			err = errors.Join(err, d.mapping.Close())
		}
		err = errors.Join(err, d.f.Close())
	}
	return err
}
