package kaldiio

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fullDisk writes to a file until it has so many bytes.
type fullDisk struct {
	file *os.File
	room int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	n, err := d.file.Write(p[:min(len(p), d.room)])
	if d.room -= n; err == nil && n < len(p) {
		err = errDisk
	}
	return n, err
}

// TestFullDisk: where the disk is full files end with an object that is whole, whether the archive has no room left or the script.
func TestFullDisk(t *testing.T) {
	const size = len("key0000 \x00BFV \x04....") + 20*4 // of an object in binary
	for _, c := range []struct {
		spec            string
		archive, script int // room
		objects         int // in the files; 1 for some
	}{
		{"ark", 0, 0, 0}, {"ark", 1000, 0, 1000 / size}, {"ark", 200_000, 0, 200_000 / size}, {"ark,f", 5000, 0, 5000 / size}, {"ark,t", 50_000, 0, 1},
		{"ark,scp", 1000, 1 << 20, 1000 / size}, {"ark,scp", 1 << 30, 2000, 1}, {"ark,scp,f", 150_000, 1 << 20, 150_000 / size}, {"ark,scp", 1 << 30, 0, 0},
	} {
		dir := t.TempDir()
		archive, script := filepath.Join(dir, "ark"), filepath.Join(dir, "scp")
		name := archive
		if strings.Contains(c.spec, "scp") {
			name += "," + script
		}
		w, err := NewTableWriter(new(Opener), c.spec+":"+name, (*Writer).Vector)
		if err != nil {
			t.Fatal(err)
		}
		w.archive = NewWriter(&fullDisk{w.closers[0].(*os.File), c.archive}, !w.spec.Text)
		if w.script != nil {
			w.script = NewWriter(&fullDisk{w.closers[1].(*os.File), c.script}, false)
		}
		v := make([]float32, 20)
		for i := range 5000 {
			if err = w.Write(fmt.Sprintf("key%04d", i), v); err != nil {
				break
			}
		}
		if err := w.Close(); !errors.Is(err, errDisk) {
			t.Errorf("%s: %v", c.spec, err)
		}
		specs := []string{"ark:" + archive}
		if w.script != nil {
			specs = append(specs, "scp:"+script)
		}
		for _, spec := range specs {
			r, err := NewTableReader(new(Opener), spec, VectorHolder())
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for r.Next() {
				n++
			}
			if err := r.Close(); err != nil || n < min(c.objects, 1) || c.objects > 1 && n != c.objects {
				t.Errorf("%s: %s has %d objects, want %d, and %v", c.spec, filepath.Base(spec), n, c.objects, err)
			}
		}
	}
}
