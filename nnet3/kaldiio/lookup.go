package kaldiio

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/nnopt/nnopt/internal/fileio"
)

// TableLookup finds objects of a table by their keys. It reads a script at once, and an object when
// it is looked up. It reads an archive as far as needed. It notes where in a file the objects on the
// way are, and keeps those of other archives, and strings, in memory, unless the rspecifier rules
// out that they are looked up again (o, or s and cs together).
type TableLookup[T any] struct {
	spec  Rspecifier
	hold  Holder[T]
	files fileCache

	lines map[string]ScriptLine // of a script
	list  *TableReader[T]       // of an archive: the unread rest
	held  map[string]T          // of an archive: objects read and kept
	file  *fileio.File          // of the archive, if objects can be read again
	again fileCache             // reads them
	start int64                 // where the archive begins in the file
	at    map[string]int64      // where they are in the archive
	bad   map[string]error      // of an archive: unreadable objects, until reported
	order []string              // of a sorted archive: the keys of held in order
	last  string                // the last key read
	asked string                // the last key looked up
}

// ErrOrder means that keys are not in the order that the options of an rspecifier promise.
var ErrOrder = errors.New("keys are not in the promised order")

// NewTableLookup opens the table that an rspecifier names.
func NewTableLookup[T any](o *Opener, rspecifier string, h Holder[T]) (*TableLookup[T], error) {
	list, err := NewTableReader(o, rspecifier, h)
	if err != nil {
		return nil, err
	}
	t := &TableLookup[T]{spec: list.spec, hold: h, list: list}
	t.files.opener = o
	if !t.spec.Script {
		t.held, t.bad = make(map[string]T), make(map[string]error)
		// Strings, such as speakers, are no larger than the notes about their places would be.
		// Matrices of a whole corpus don't fit into memory, but their places do.
		if _, short := any(*new(T)).(string); !short && list.list.size >= 0 {
			err = t.note()
		}
		return t, err
	}
	defer list.Close()
	t.list, t.lines = nil, make(map[string]ScriptLine)
	err = list.list.eachScriptLine(func(line ScriptLine) error {
		if _, twice := t.lines[line.Key]; twice {
			return list.list.Errorf("key %s occurs twice", fileio.Excerpt(line.Key, 0))
		}
		t.lines[line.Key] = line
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// note has objects of an archive in a file noted instead of kept.
func (t *TableLookup[T]) note() (err error) {
	if t.file, _ = t.list.closer.(*fileio.File); t.file == nil {
		return nil
	}
	t.at, t.again.in = make(map[string]int64), t.file
	t.start, err = t.file.Seek(0, io.SeekCurrent)
	return err
}

// Lookup returns the object with the given key; ok is false if the table has none.
func (t *TableLookup[T]) Lookup(key string) (v T, ok bool, err error) {
	if t.spec.calledSorted && key < t.asked {
		return v, false, fmt.Errorf("option cs: key %s is asked for after %s: %w", fileio.Excerpt(key, 0), t.asked, ErrOrder)
	}
	t.asked = key
	if t.lines != nil {
		line, ok := t.lines[key]
		if !ok {
			return v, false, nil
		}
		v, err = readScripted(&t.files, line, t.hold)
		if err != nil && t.spec.Permissive {
			return *new(T), false, nil
		}
		return v, err == nil, err
	}
	if t.spec.sorted && t.spec.calledSorted {
		t.forget(key)
	}
	// The object was passed over on the way to another. Its error concerns who asks for it, once,
	// and Close if no one does.
	if err, ok := t.bad[key]; ok {
		delete(t.bad, key)
		return v, false, err
	}
	if v, ok = t.held[key]; ok {
		if t.spec.once {
			delete(t.held, key)
		}
		return v, true, nil
	}
	if at, ok := t.at[key]; ok {
		if t.spec.once {
			delete(t.at, key)
		}
		v, err = t.readAgain(key, at)
		return v, err == nil, err
	}
	return t.readTo(key)
}

// readAgain reads an object that was read before, and returns to where the archive is read.
func (t *TableLookup[T]) readAgain(key string, at int64) (v T, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("key %s: %w", fileio.Excerpt(key, 0), err)
		}
	}()
	// The file has one position, and the reader of the rest has read ahead of its own. Afterwards
	// the file must be where that reader's buffer ends, not where the reader is.
	rest := t.list.list
	if _, err = t.file.Seek(t.start+at, io.SeekStart); err != nil {
		return v, err
	}
	r, err := t.again.restart(t.spec.Name, at)
	if err == nil {
		v, err = t.hold.Read(r)
	}
	_, back := t.file.Seek(t.start+rest.base+int64(rest.end), io.SeekStart)
	return v, errors.Join(err, back)
}

// forget drops the objects before a key.
func (t *TableLookup[T]) forget(key string) {
	n, _ := slices.BinarySearch(t.order, key)
	for _, k := range t.order[:n] {
		delete(t.held, k)
		delete(t.at, k)
	}
	t.order = t.order[n:]
}

// readTo reads an archive up to a key.
func (t *TableLookup[T]) readTo(key string) (none T, ok bool, err error) {
	// In a sorted archive, a later key proves that this one is missing. Otherwise the whole rest
	// must be read to know.
	for !(t.spec.sorted && t.last > key) {
		if !t.list.Next() {
			more, err := t.list.Skip()
			if !more || t.list.Key() == key {
				return none, false, err
			}
			t.bad[t.list.Key()] = err
			continue
		}
		k, v := t.list.Key(), t.list.Value()
		if t.spec.sorted && k < t.last {
			return none, false, fmt.Errorf("option s: key %s comes after %s in %s: %w", fileio.Excerpt(k, 0), t.last, t.spec.Name, ErrOrder)
		}
		t.last = k
		if k == key {
			if !t.spec.once {
				t.keep(k, v)
			}
			return v, true, nil
		}
		_, twice := t.held[k]
		if _, noted := t.at[k]; twice || noted {
			return none, false, fmt.Errorf("%s: key %s occurs twice: %w", fileio.Excerpt(t.spec.Name, 0), k, ErrCorrupt)
		}
		// With both promises no later call can ask for an earlier key.
		if !(t.spec.sorted && t.spec.calledSorted && k < key) {
			t.keep(k, v)
		}
	}
	return none, false, nil
}

func (t *TableLookup[T]) keep(key string, v T) {
	if t.at != nil {
		t.at[key] = t.list.at
	} else {
		t.held[key] = v
	}
	if t.spec.sorted && t.spec.calledSorted {
		t.order = append(t.order, key)
	}
}

// Close closes the table. It returns the errors that Lookup has not reported.
func (t *TableLookup[T]) Close() error {
	t.files.close()
	if t.list == nil {
		return nil
	}
	err := t.list.Close()
	for _, key := range slices.Sorted(maps.Keys(t.bad)) {
		err = errors.Join(err, t.bad[key])
	}
	return err
}
