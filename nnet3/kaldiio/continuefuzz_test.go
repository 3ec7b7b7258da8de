package kaldiio

import (
	"errors"
	"os"
	"slices"
	"testing"
)

// FuzzContinueTable: whatever an archive and its script are, they are left alone, or become a table
// that can be read and that the next run continues as it is.
func FuzzContinueTable(f *testing.F) {
	f.Add([]byte("a  [ 1 2 ]\nbb  [ 3 ]\n"), []byte("a x:2\nbb x:15\n"), true)
	f.Add([]byte("a  [ 1 2 ]\nbb  [ 3 "), []byte("a x:2\nbb"), true)
	f.Add([]byte("a \x00BFV \x04\x01\x00\x00\x00\x00\x00\x00\x3fb \x00BFV \x04\x00\x00\x00\x00"), []byte("a x:2\n"), false)
	f.Add([]byte("a \x00BDV \x04\xff\xff\xff\x7f"), []byte("a x:2\nb x:9999999999999\n"), false)
	f.Fuzz(func(t *testing.T, archive, script []byte, text bool) {
		t.Chdir(t.TempDir())
		if err := errors.Join(os.WriteFile("x", archive, 0o666), os.WriteFile("y", script, 0o666)); err != nil {
			t.Fatal(err)
		}
		spec := "ark,scp:x,y"
		if text {
			spec = "ark,scp,t:x,y"
		}
		w, kept, err := ContinueTable(new(Opener), spec, (*Writer).Vector, passVector)
		if err != nil {
			if readAll(t, "x") != string(archive) || readAll(t, "y") != string(script) {
				t.Errorf("files are changed in spite of %v", err)
			}
			return
		}
		w.Write("last", []float32{0.5})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, "last")
		after := readAll(t, "x")
		if n := len(after) - len("last "); n < 0 || len(kept) > 1 && len(archive) == 0 {
			t.Errorf("%d objects in an archive of %d bytes", len(kept), len(after))
		}
		var keys []string
		table, err := NewTableReader(new(Opener), "ark:x", VectorHolder())
		if err != nil {
			t.Fatal(err)
		}
		for table.Next() {
			keys = append(keys, table.Key())
		}
		if err := table.Close(); err == nil && !slices.Equal(keys, kept) {
			t.Errorf("kept %q, the archive has %q", kept, keys)
		}
		w, again, err := ContinueTable(new(Opener), spec, (*Writer).Vector, passVector)
		if err != nil {
			t.Fatalf("again: %v", err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(kept, again) || readAll(t, "x") != after {
			t.Errorf("kept %q of %d bytes, and again %q of %d", kept, len(after), again, len(readAll(t, "x")))
		}
	})
}
