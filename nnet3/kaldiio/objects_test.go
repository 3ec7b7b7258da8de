package kaldiio

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

// TestObjects: lines name objects in any order, and a bad line does not harm the next one.
func TestObjects(t *testing.T) {
	dir := t.TempDir()
	archive, script := filepath.Join(dir, "a.ark"), filepath.Join(dir, "a.scp")
	err := WriteArchive(new(Opener), archive, script, (*Writer).Vector, func(put func(string, []float32) error) error {
		return errors.Join(put("a", []float32{1}), put("b", []float32{2, 3}))
	})
	if err != nil {
		t.Fatal(err)
	}
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
