package kaldiio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A fullDisk has room for a number of bytes in all its files together.
type fullDisk struct{ room int64 }

// A diskFile is a file on a fullDisk.
type diskFile struct {
	*os.File
	disk *fullDisk
}

func (d *diskFile) size() int64 {
	info, err := d.File.Stat()
	if err != nil {
		panic(err)
	}
	return info.Size()
}

func (d *diskFile) Write(p []byte) (int, error) {
	n, err := d.File.Write(p[:min(int64(len(p)), d.disk.room)])
	if d.disk.room -= int64(n); err == nil && n < len(p) {
		err = errDisk
	}
	return n, err
}

func (d *diskFile) Truncate(to int64) error {
	d.disk.room += d.size() - to
	return d.File.Truncate(to)
}

func (d *diskFile) Stat() (fs.FileInfo, error) { return d.File.Stat() }

// TestFullDisk checks that on a full disk an archive keeps as many complete objects as fit, and
// that the script lists just these.
func TestFullDisk(t *testing.T) {
	const (
		size = int64(len("key0000 \x00BFV \x04....") + 20*4) // of an object in binary
		many = int64(1 << 40)
	)
	for _, c := range []struct {
		spec            string
		archive, script int64 // room; a script of room 0 is on the disk of the archive
		objects         int64 // in the files; 1 for some
	}{
		{"ark", 0, 0, 0}, {"ark", 1000, 0, 1000 / size}, {"ark", 200_000, 0, 200_000 / size}, {"ark,f", 5000, 0, 5000 / size}, {"ark,t", 50_000, 0, 1},
		{"ark,scp", 1000, many, 1000 / size}, {"ark,scp", many, 2000, 1}, {"ark,scp,f", 150_000, many, 150_000 / size},
		{"ark,scp", 10_000, 0, 1}, {"ark,scp", 200_000, 0, 1}, {"ark,scp,f", 150_000, 0, 1}, {"ark,scp", 50, 0, 0},
	} {
		t.Chdir(t.TempDir()) // so that names in scripts have the same length every time
		archive, script := "out.ark", "out.scp"
		name := archive
		if strings.Contains(c.spec, "scp") {
			name += "," + script
		}
		w, err := NewTableWriter(new(Opener), c.spec+":"+name, (*Writer).Vector)
		if err != nil {
			t.Fatal(err)
		}
		disk := &fullDisk{c.archive}
		on := func(i int, name string, disk *fullDisk) *diskFile {
			f, err := os.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			d := &diskFile{f, disk}
			w.outputs[i] = d
			return d
		}
		w.archive = NewWriter(on(0, archive, disk), !w.spec.text)
		if w.script != nil {
			other := disk
			if c.script > 0 {
				other = &fullDisk{c.script}
			}
			on(1, script, other)
			w.script = NewWriter(lastingScript[[]float32]{w}, false)
		}
		v, asked := make([]float32, 20), 0
		for i := range 5000 {
			asked++
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
			n := countObjects(t, spec)
			whole, lost := w.Count()
			if n < min(c.objects, 1) || c.objects > 1 && n != c.objects || n != int64(whole) || whole+lost != asked {
				t.Errorf("%s of %s in %d bytes has %d objects, want %d; of %d are left %d", filepath.Base(spec), c.spec, c.archive, n, c.objects, asked, whole)
			}
		}
		if c.objects == 1 && w.script != nil && c.script == 0 {
			// As many as fit: there is no room for another object with its line.
			if left := disk.room; left >= 2*(size+int64(len(script))+100) {
				t.Errorf("%s in %d bytes: %d bytes are free", c.spec, c.archive, left)
			}
		}
	}
}

func countObjects(t *testing.T, rspecifier string) (n int64) {
	t.Helper()
	r, err := NewTableReader(new(Opener), rspecifier, VectorHolder())
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
		n++
	}
	if err := r.Close(); err != nil {
		t.Errorf("%s: %v", rspecifier, err)
	}
	return n
}

// TestWriterContext checks that a writer stops when its context is done, with complete objects in
// files that agree.
func TestWriterContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	dir := t.TempDir()
	archive, script := filepath.Join(dir, "ark"), filepath.Join(dir, "scp")
	w, err := NewTableWriter(&Opener{Context: ctx}, "ark,scp:"+archive+","+script, (*Writer).Vector)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(2000) {
		if err := w.Write(fmt.Sprint("key", i), make([]float32, 20)); err != nil {
			t.Fatal(err)
		}
	}
	enough := errors.New("enough")
	cancel(enough)
	for err = nil; err == nil; { // until the writer has noticed
		err = w.Write("late", make([]float32, 20))
	}
	if !errors.Is(err, enough) {
		t.Error(err)
	}
	a, s := countObjects(t, "ark:"+archive), countObjects(t, "scp:"+script)
	if whole, lost := w.Count(); a < 2000 || a != s || a != int64(whole) || lost != 0 {
		t.Errorf("the archive has %d objects, the script %d, and %d are lost", a, s, lost)
	}
	if err := w.Close(); !errors.Is(err, enough) {
		t.Error(err)
	}
}

// TestCommands checks that errors of commands include what the command wrote to standard error.
func TestCommands(t *testing.T) {
	for _, c := range []struct {
		rspecifier string
		objects    int
		says       []string
	}{
		{"ark:nosuchcommand |", 0, []string{"nosuchcommand", "not found", "127"}},
		{"ark:echo 'a [ 1 ]'; echo alas >&2; exit 3 |", 1, []string{"exit status 3", "alas"}},
		{"ark:echo 'a [ 1'; echo alas >&2; exit 3 |", 0, []string{"exit status 3", "alas", "reading"}},
		{"ark:echo 'a [ 1 ]'; kill -9 $$ |", 1, []string{"killed"}},
		{"ark:echo 'a [ 1 ]' |", 1, nil},
		{"ark:echo 'a [ 1 ]'; head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1 |", 1, []string{"exit status 1", "xxxx"}},
		{"scp:" + writeFile(t, "s", "a echo '[ 1 ]'; echo alas >&2; exit 4 |\n"), 0, []string{"key a", "exit status 4", "alas"}},
		{"scp:" + writeFile(t, "s", "a nosuchcommand |\n"), 0, []string{"key a", "nosuchcommand", "127"}},
		{"scp:" + writeFile(t, "s", "a echo '[ 1 ]' |\nb yes '[ 2 ]' |\n"), 2, nil},
	} {
		r, err := NewTableReader(&Opener{Commands: true}, c.rspecifier, VectorHolder())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for r.Next() {
			n++
		}
		err = r.Close()
		if n != c.objects || (err == nil) != (c.says == nil) || err != nil && len(err.Error()) > maxStderr+500 {
			t.Errorf("%s: %d objects, %v", c.rspecifier, n, err)
		}
		for _, want := range c.says {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is missing in %v", c.rspecifier, want, err)
			}
		}
	}
	for _, c := range []struct {
		command string
		lost    int
		says    []string
	}{
		{"nosuchcommand", 1000, []string{"nosuchcommand", "not found", "127"}},
		{"cat > /dev/null; echo alas >&2; exit 5", 1000, []string{"exit status 5", "alas"}},
		{"head -c 10 > /dev/null", 1000, []string{"ended before"}},
		{"cat > /dev/null", 0, nil},
	} {
		w, err := NewTableWriter(&Opener{Commands: true}, "ark:| "+c.command, (*Writer).Vector)
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		for err == nil && asked < 1000 {
			asked++
			err = w.Write("a", make([]float32, 1000))
		}
		err = w.Close()
		if whole, lost := w.Count(); (err == nil) != (c.says == nil) || lost != min(c.lost, asked) || whole+lost != asked {
			t.Errorf("%s: %v, and of %d are lost %d", c.command, err, asked, lost)
		}
		for _, want := range c.says {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is missing in %v", c.command, want, err)
			}
		}
	}
}

// TestTakeBack: an object that fails leaves no trace in files, and the table goes on.
func TestTakeBack(t *testing.T) {
	torn := errors.New("torn")
	write := func(w *Writer, m Matrix) {
		w.BeginMatrix(m.Rows, m.Cols)
		for i := range m.Rows {
			w.Rows(Matrix{Rows: 1, Cols: m.Cols, Stride: m.Cols, Data: m.Row(i)})
			if m.Row(i)[0] == -1 {
				w.Fail(torn)
				return
			}
		}
		w.EndMatrix()
	}
	good := Matrix{Rows: 3000, Cols: 20, Stride: 20, Data: make([]float32, 60_000)}
	bad := Matrix{Rows: 3000, Cols: 20, Stride: 20, Data: append([]float32(nil), good.Data...)}
	bad.Row(2900)[0] = -1
	for _, spec := range []string{"ark", "ark,t", "ark,f", "ark,scp", "ark,scp,t", "scp"} {
		t.Run(spec, func(t *testing.T) {
			t.Chdir(t.TempDir())
			name, back := "out.ark", "ark:out.ark"
			if strings.Contains(spec, "scp") {
				name, back = "out.ark,out.scp", "scp:out.scp"
			}
			if spec == "scp" {
				name = "out.scp"
				if err := os.WriteFile(name, []byte("a a.mat\nb b.mat\nc c.mat\nd d.mat\n"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			w, err := NewTableWriter(new(Opener), spec+":"+name, write)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				key  string
				m    Matrix
				want error
			}{{"a", good, nil}, {"b", bad, torn}, {"c", good, nil}, {"d", bad, torn}} {
				if err := w.Write(c.key, c.m); !errors.Is(err, c.want) {
					t.Errorf("%s: %v", c.key, err)
				}
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if whole, lost := w.Count(); whole != 2 || lost != 0 {
				t.Errorf("%d whole, %d lost", whole, lost)
			}
			r, err := NewTableReader(new(Opener), "p,"+back, MatrixHolder())
			if err != nil {
				t.Fatal(err)
			}
			keys := ""
			for key, m := range r.All() {
				if keys += key; m.Rows != 3000 {
					t.Errorf("%s has %d rows", key, m.Rows)
				}
			}
			if err := r.Close(); err != nil || keys != "ac" {
				t.Errorf("there is %s, %v", keys, err)
			}
		})
	}
	// A pipe can't be taken back.
	w, err := NewTableWriter(&Opener{Stdout: io.Discard}, "ark:-", write)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write("b", bad); !errors.Is(err, torn) {
		t.Error(err)
	}
	if err := w.Write("c", good); !errors.Is(err, torn) {
		t.Error(err)
	}
	if err := w.Close(); !errors.Is(err, torn) {
		t.Error(err)
	}
}
