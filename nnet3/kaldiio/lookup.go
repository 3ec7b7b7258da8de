package kaldiio

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// TableLookup finds objects of a table by their keys. A script is read at once, its objects when they are asked for. An
// archive is read as far as needed; what has been read past is kept in memory, unless the options of the rspecifier say
// that it won't be asked for again (o, or s and cs together).
type TableLookup[T any] struct {
	spec  Rspecifier
	hold  Holder[T]
	files fileCache

	lines map[string]ScriptLine // of a script
	held  map[string]T          // of an archive: read and kept
	bad   map[string]error      // of an archive: what can't be read, until it is told
	order []string              // keys of held in the order of the archive, of a sorted archive only
	list  *TableReader[T]       // of an archive: what is still unread
	last  string                // key that was read last
	asked string                // key that was asked for last
}

// ErrOrder means that keys are not in the order that the options of an rspecifier promised.
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
		return t, nil
	}
	defer list.Close()
	t.lines = make(map[string]ScriptLine)
	for {
		line, more, err := list.list.scriptLine()
		if err != nil {
			return nil, err
		}
		if !more {
			t.list = nil
			return t, nil
		}
		if err := list.list.mayHold(); err != nil {
			return nil, err
		}
		if _, twice := t.lines[line.Key]; twice {
			return nil, list.list.Errorf("key %s occurs twice", line.Key)
		}
		t.lines[line.Key] = line
	}
}

// Lookup returns the object with the given key; ok is false if the table has none.
func (t *TableLookup[T]) Lookup(key string) (v T, ok bool, err error) {
	if t.spec.CalledSorted && key < t.asked {
		return v, false, fmt.Errorf("option cs: key %s is asked for after %s: %w", key, t.asked, ErrOrder)
	}
	t.asked = key
	if t.lines != nil {
		line, ok := t.lines[key]
		if !ok {
			return v, false, nil
		}
		v, err = readScripted(&t.files, line, t.hold)
		if err != nil && t.spec.Permissive {
			var none T
			return none, false, nil
		}
		return v, err == nil, err
	}
	if t.spec.Sorted && t.spec.CalledSorted {
		t.forget(key)
	}
	if err, ok := t.bad[key]; ok {
		delete(t.bad, key)
		return v, false, err
	}
	if v, ok = t.held[key]; ok {
		if t.spec.Once {
			delete(t.held, key)
		}
		return v, true, nil
	}
	return t.readTo(key)
}

// forget drops the objects with keys before the given one.
func (t *TableLookup[T]) forget(key string) {
	n := 0
	for n < len(t.order) && t.order[n] < key {
		delete(t.held, t.order[n])
		n++
	}
	t.order = t.order[n:]
}

// readTo reads an archive up to the given key.
func (t *TableLookup[T]) readTo(key string) (none T, ok bool, err error) {
	for !(t.spec.Sorted && t.last > key) {
		if !t.list.Next() {
			err := t.list.Err()
			passed, more := t.list.Skip()
			if !more {
				return none, false, NotLookedAt(err, passed)
			}
			err = NotLookedAt(err, passed)
			if t.list.Key() == key {
				return none, false, err
			}
			t.bad[t.list.Key()] = err
			continue
		}
		k, v := t.list.Key(), t.list.Value()
		if t.spec.Sorted && k < t.last {
			return none, false, fmt.Errorf("option s: key %s comes after %s in %s: %w", k, t.last, t.spec.Name, ErrOrder)
		}
		t.last = k
		if k == key {
			if !t.spec.Once {
				t.keep(k, v)
			}
			return v, true, nil
		}
		if _, twice := t.held[k]; twice {
			return none, false, fmt.Errorf("%s: key %s occurs twice: %w", t.spec.Name, k, ErrCorrupt)
		}
		if !(t.spec.Sorted && t.spec.CalledSorted && k < key) {
			t.keep(k, v)
		}
	}
	return none, false, nil
}

func (t *TableLookup[T]) keep(key string, v T) {
	t.held[key] = v
	if t.spec.Sorted && t.spec.CalledSorted {
		t.order = append(t.order, key)
	}
}

// Close closes the table. It returns what could not be read and nobody was told of.
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
