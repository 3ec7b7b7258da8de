package kaldiio

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// writeTable writes an archive and its script.
func writeTable[T any](t *testing.T, archive, script string, write func(*Writer, T), objects map[string]T) {
	t.Helper()
	w, err := NewTableWriter(new(Opener), "ark,scp:"+archive+","+script, write)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		err = errors.Join(err, w.Write(key, objects[key]))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestObjects: lines name objects in any order, and a bad line does not harm the next one.
func TestObjects(t *testing.T) {
	dir := t.TempDir()
	archive, script := filepath.Join(dir, "a.ark"), filepath.Join(dir, "a.scp")
	writeTable(t, archive, script, (*Writer).Vector, map[string][]float32{"a": {1}, "b": {2, 3}})
	objects := NewObjects(new(Opener), VectorHolder())
	defer objects.Close()
	for _, c := range []struct {
		name string
		want float32
		err  error
	}{
		{name: archive + ":18", want: 2},
		{name: archive + ":1", err: ErrCorrupt},
		{name: archive + ":2", want: 1},
		{name: filepath.Join(dir, "none"), err: fs.ErrNotExist},
		{name: archive + ":18", want: 2},
	} {
		v, err := objects.Of(ScriptLine{Key: "key", Name: c.name})
		if !errors.Is(err, c.err) || c.err == nil && (len(v) == 0 || v[0] != c.want) {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, v, err, c.want, c.err)
		}
	}
}
