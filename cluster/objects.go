package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
)

// systems has the file systems of this process by scheme: each has connections of its own.
var systems struct {
	sync.Mutex
	of map[string]filesystem.Interface
}

// systemOf returns the file system for a name with a scheme, of those that are registered with
// Beam.
func systemOf(name string) (_ filesystem.Interface, err error) {
	scheme, _, _ := strings.Cut(name, "://")
	systems.Lock()
	defer systems.Unlock()
	if s := systems.of[scheme]; s != nil {
		return s, nil
	}
	defer func() { // Beam's, if there are no credentials
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %v", name, p)
		}
	}()
	if scheme == "default" { // Beam's name for files without a scheme
		return nil, fmt.Errorf("%s: unknown scheme", name)
	}
	s, err := filesystem.New(context.Background(), name)
	if err != nil {
		return nil, err
	}
	if systems.of == nil {
		systems.of = make(map[string]filesystem.Interface)
	}
	systems.of[scheme] = s
	return s, nil
}

// objects is the store of names with a scheme, such as gs://bucket/scored. There an object appears
// when all of it has been written, so nothing is renamed: what is to be committed waits in a file
// of this machine until it is whole. What fails is repeated.
type objects struct{}

// again repeats an operation on an object until it succeeds or is hopeless.
func again(ctx context.Context, name string, do func(filesystem.Interface) error) error {
	s, err := systemOf(name)
	if err != nil {
		return err
	}
	return newRetrier().do(ctx, name, func() error {
		return named(name, do(s))
	})
}

// errAbsent means that an object is not there.
var errAbsent = fmt.Errorf("no such object: %w", fs.ErrNotExist)

// missing are words by which file systems say that an object is not there. Others are tried in vain
// several times.
var missing = []string{"not exist", "n't exist", "NoSuchKey", "NotFound", "not found"}

// absent turns the error of an operation into errAbsent if it says that the object is not there.
func absent(name string, err error) error {
	is := errors.Is(err, fs.ErrNotExist)
	for _, words := range missing {
		is = is || err != nil && strings.Contains(err.Error(), words)
	}
	if !is {
		return err
	}
	return fmt.Errorf("%s: %w", name, errAbsent)
}

func (objects) open(ctx context.Context, name string) (io.ReadCloser, error) {
	// The whole object is read at once, so that a read that breaks off can be repeated. Plans,
	// lists and scripts are small; archives are never read.
	var text []byte
	err := again(ctx, name, func(s filesystem.Interface) (err error) {
		text, err = filesystem.Read(ctx, s, name)
		return absent(name, err)
	})
	return struct {
		*bytes.Reader // seeks, as a file of a disk does
		io.Closer
	}{bytes.NewReader(text), io.NopCloser(nil)}, err
}

func (objects) size(ctx context.Context, name string) (n int64, err error) {
	err = again(ctx, name, func(s filesystem.Interface) (err error) {
		n, err = s.Size(ctx, name)
		return absent(name, err)
	})
	return n, err
}

func (objects) scratch(_, id string) (*os.File, error) {
	return os.CreateTemp("", "nnopt-"+id+".*.tmp")
}

func (objects) commit(ctx context.Context, f *os.File, name string) error {
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return again(ctx, name, func(s filesystem.Interface) error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := put(ctx, s, name, f); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		// An object of another size was cut off. It is written again, as after an error.
		if n, err := s.Size(ctx, name); err != nil || n != info.Size() {
			return fmt.Errorf("write %s: it has %d bytes instead of %d: %w", name, n, info.Size(), cmp.Or(err, io.ErrShortWrite))
		}
		return nil
	})
}

// put writes an object.
func put(ctx context.Context, s filesystem.Interface, name string, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.OpenWrite(ctx, name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil {
		cancel() // or else Close would make an object of what has been written
		w.Close()
		return err
	}
	return w.Close()
}

func (o objects) write(ctx context.Context, name string, fill func(io.Writer) error) error {
	f, err := o.scratch("", "object")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := fill(f); err != nil {
		f.Close()
		return err
	}
	return o.commit(ctx, f, name)
}

func (objects) list(ctx context.Context, dir string) (names []string, err error) {
	err = again(ctx, dir, func(s filesystem.Interface) (err error) {
		names, err = s.List(ctx, dir+"/*")
		return err
	})
	for i, name := range names {
		names[i] = name[strings.LastIndexByte(name, '/')+1:]
	}
	return names, err
}

func (objects) remove(ctx context.Context, name string) error {
	return again(ctx, name, func(s filesystem.Interface) error {
		r, ok := s.(filesystem.Remover)
		if !ok {
			return nil
		}
		err := absent(name, r.Remove(ctx, name))
		if errors.Is(err, errAbsent) {
			return nil
		}
		return err
	})
}
