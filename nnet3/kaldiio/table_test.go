package kaldiio

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/internal/alloctest"
)

func TestParseRspecifier(t *testing.T) {
	for _, c := range []struct {
		text string
		want Rspecifier
		ok   bool
	}{
		{"ark:a.ark", Rspecifier{Name: "a.ark"}, true},
		{"scp:a.scp", Rspecifier{Script: true, Name: "a.scp"}, true},
		{"ark:-", Rspecifier{Name: "-"}, true},
		{"ark:", Rspecifier{}, true},
		{"o,s,cs,p,bg,scp:a", Rspecifier{Script: true, Name: "a", once: true, sorted: true, calledSorted: true, Permissive: true, background: true}, true},
		{"ark,s,ns,t:a", Rspecifier{Name: "a"}, true},
		{"ark:zcat a.gz |", Rspecifier{Name: "zcat a.gz |"}, true},
		{"ark:C:/a:12", Rspecifier{Name: "C:/a:12"}, true},
		{"ark:a ", Rspecifier{}, false},
		{"ark,scp:a", Rspecifier{}, false},
		{"a.ark", Rspecifier{}, false},
		{"arc:a", Rspecifier{}, false},
		{"s:a", Rspecifier{}, false},
		{"", Rspecifier{}, false},
	} {
		got, err := ParseRspecifier(c.text)
		if ok := err == nil; ok != c.ok || ok && got != c.want || !ok && !errors.Is(err, ErrSpecifier) {
			t.Errorf("%q: %+v, %v; want %+v, %v", c.text, got, err, c.want, c.ok)
		}
	}
}

func TestParseWspecifier(t *testing.T) {
	for _, c := range []struct {
		text string
		want Wspecifier
		ok   bool
	}{
		{"ark:a", Wspecifier{Archive: "a", HasArchive: true}, true},
		{"ark,t:-", Wspecifier{Archive: "-", HasArchive: true, text: true}, true},
		{"ark,scp,f:a,b", Wspecifier{Archive: "a", Script: "b", HasArchive: true, HasScript: true, flush: true}, true},
		{"scp,p:b", Wspecifier{Script: "b", HasScript: true, permissive: true}, true},
		{"ark,scp:a", Wspecifier{}, false},
		{"ark,scp:a,a", Wspecifier{}, false},
		{"scp,ark:a,b", Wspecifier{}, false},
		{"t:a", Wspecifier{}, false},
		{"ark:a ", Wspecifier{}, false},
		{"ark,o:a", Wspecifier{}, false},
		{"a", Wspecifier{}, false},
	} {
		got, err := ParseWspecifier(c.text)
		if ok := err == nil; ok != c.ok || ok && got != c.want || !ok && !errors.Is(err, ErrSpecifier) {
			t.Errorf("%q: %+v, %v; want %+v, %v", c.text, got, err, c.want, c.ok)
		}
	}
}

func TestParseScriptLine(t *testing.T) {
	for _, c := range []struct {
		line string
		want ScriptLine
		ok   bool
	}{
		{"a b", ScriptLine{Key: "a", Name: "b"}, true},
		{"  a \t b.ark:12 ", ScriptLine{Key: "a", Name: "b.ark:12"}, true},
		{"a cat b c |", ScriptLine{Key: "a", Name: "cat b c |"}, true},
		{"a b[0:9]", ScriptLine{"a", "b", Range{0, 9, -1, -1}, true}, true},
		{"a b[0:9,2:3]", ScriptLine{"a", "b", Range{0, 9, 2, 3}, true}, true},
		{"a b[:,2:3]", ScriptLine{"a", "b", Range{-1, -1, 2, 3}, true}, true},
		{"a b[,2:3]", ScriptLine{"a", "b", Range{-1, -1, 2, 3}, true}, true},
		{"a b[3:2]", ScriptLine{}, false},
		{"a b[-1:2]", ScriptLine{}, false},
		{"a b[]", ScriptLine{}, false},
		{"a b]", ScriptLine{}, false},
		{"a", ScriptLine{}, false},
		{"", ScriptLine{}, false},
	} {
		got, err := ParseScriptLine(c.line)
		if ok := err == nil; ok != c.ok || ok && got != c.want || !ok && !errors.Is(err, ErrSpecifier) {
			t.Errorf("%q: %+v, %v; want %+v, %v", c.line, got, err, c.want, c.ok)
		}
	}
}

func TestSlice(t *testing.T) {
	m := Matrix{Rows: 3, Cols: 3, Stride: 4, Data: []float32{0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8}}
	for _, c := range []struct {
		r    Range
		want []float32 // nil: an error
	}{
		{Range{-1, -1, -1, -1}, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{Range{1, 1, -1, -1}, []float32{3, 4, 5}},
		{Range{1, 2, 0, 1}, []float32{3, 4, 6, 7}},
		{Range{2, 5, 2, 2}, []float32{8}}, // three rows beyond the end are forgiven
		{Range{2, 6, 2, 2}, nil},
		{Range{3, 4, 2, 2}, nil},
		{Range{0, 0, 2, 3}, nil},
	} {
		got, err := m.Slice(c.r)
		if (err == nil) != (c.want != nil) || err != nil && !errors.Is(err, ErrRange) {
			t.Errorf("%v: error %v", c.r, err)
		} else if err == nil {
			if diff := cmp.Diff(c.want, packed(got).Data); diff != "" {
				t.Errorf("%v: %s", c.r, diff)
			}
		}
	}
}

// writeFile makes a file in a temporary folder.
func writeFile(t *testing.T, name, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOpenInput covers all forms of file names.
func TestOpenInput(t *testing.T) {
	file := writeFile(t, "data", "0123456789")
	o := &Opener{Stdin: strings.NewReader("stdin"), Commands: true}
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{"-", "stdin", nil},
		{"", "", nil}, // the same input, read before
		{file, "0123456789", nil},
		{file + ":7", "789", nil},
		{"echo -n hello |", "hello", nil},
		{"| cat", "", ErrSpecifier},
		{"a | b", "", ErrSpecifier},
		{" " + file, "", ErrSpecifier},
		{"ark:" + file, "", ErrSpecifier},
		{file + ".missing", "", os.ErrNotExist},
	} {
		in, err := o.OpenInput(c.name)
		if !errors.Is(err, c.err) {
			t.Errorf("%q: %v, want %v", c.name, err, c.err)
		}
		if err != nil {
			continue
		}
		var b bytes.Buffer
		b.ReadFrom(in)
		if err := in.Close(); err != nil || b.String() != c.want {
			t.Errorf("%q: %q, %v; want %q", c.name, b.String(), err, c.want)
		}
	}
	if in, err := o.OpenInput("exit 3 |"); err != nil {
		t.Error(err)
	} else if err := in.Close(); err == nil {
		t.Error("a command that fails closes without an error")
	}
	if _, err := new(Opener).OpenInput("echo |"); !errors.Is(err, ErrCommand) {
		t.Errorf("a command ran that may not run: %v", err)
	}
	if _, err := new(Opener).openOutput("| cat"); !errors.Is(err, ErrCommand) {
		t.Errorf("a command ran that may not run: %v", err)
	}
}

const texts = "a [ 1 ]\nb [ 2 2 ]\nd [ 4 ]\n"

// TestTableReader reads archives and scripts, good and bad.
func TestTableReader(t *testing.T) {
	good := writeFile(t, "good", texts+"e  [ ]\n")
	cut := writeFile(t, "cut", texts+"e [ 1")
	script := func(lines ...string) string { return writeFile(t, "script", strings.Join(lines, "\n")+"\n") }
	for _, c := range []struct {
		rspecifier, keys string
		err              error
	}{
		{"ark:" + good, "a b d e", nil},
		{"ark:" + cut, "a b d", ErrTruncated},
		{"ark,p:" + cut, "a b d", nil},
		{"ark:" + writeFile(t, "x", ""), "", nil},
		{"ark:" + writeFile(t, "x", "\x01\x02 [ ]"), "", ErrCorrupt},
		{"ark:" + writeFile(t, "x", "a [ 1 ]\nb { 2 }"), "a", ErrCorrupt},
		{"scp:" + script("u "+good+":2", "v "+good+":10"), "u v", nil},
		{"scp:" + script("u "+good+":2", "v "+good+":11"), "u", ErrCorrupt},
		{"scp,p:" + script("u "+good+":2", "v "+good+":11", "w "+good+":2"), "u w", nil},
		{"scp:" + script("u "+good+":2[0:0]"), "", ErrSpecifier},
		{"scp:" + script("u "+good+":2", "", "w "+good+":2"), "u", ErrCorrupt},
		{"scp:" + script("u "+good+".missing"), "", os.ErrNotExist},
		{"scp:" + script("u echo [ 7 ] |"), "", ErrCommand},
	} {
		r, err := NewTableReader(new(Opener), c.rspecifier, VectorHolder())
		if err != nil {
			t.Errorf("%s: %v", c.rspecifier, err)
			continue
		}
		var keys []string
		for r.Next() {
			keys = append(keys, r.Key())
		}
		if got := strings.Join(keys, " "); got != c.keys {
			t.Errorf("%s: keys %q, want %q", c.rspecifier, got, c.keys)
		}
		if err := r.Close(); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.rspecifier, err, c.err)
		}
	}
}

// TestPassed checks how many bytes are reported as skipped.
func TestPassed(t *testing.T) {
	for _, c := range []struct {
		text   string
		passed int64
		more   bool
	}{
		{"a [ 1 ? ]\nb [ 2 ]\n", int64(len("? ]\n")), true},
		{"a [ 1 ? ]\nb 2 ]\n", int64(len("? ]\nb 2 ]\n")), false},
		{"a \x00BFX 123456789", int64(len("FX 123456789")), false},
		{"a \x00BFM \x04\x01\x00\x00\x00\x04\x01\x00\x00\x00....", 0, true},
	} {
		for _, name := range []string{writeFile(t, "ark", c.text), "-"} {
			if c.passed > 0 && strings.Contains(c.text, "\x00") && name == "-" {
				c.passed = -1 // not known
			}
			r, err := NewTableReader(&Opener{Stdin: strings.NewReader(c.text)}, "ark:"+name, VectorHolder())
			if err != nil {
				t.Fatal(err)
			}
			if r.Next() {
				t.Errorf("%q has an object", c.text)
			}
			passed, more := r.skip()
			if more != c.more || passed != c.passed {
				t.Errorf("%q: passed %d bytes, more: %v", c.text, passed, more)
			}
		}
	}
}

// TestSkip continues after unreadable objects where that is possible.
func TestSkip(t *testing.T) {
	good := writeFile(t, "good", texts)
	broken := writeFile(t, "broken", "a [ 1 ]\nb { 2 }\nd [ 4 ]\n")
	script := "u " + good + ":2\nv " + good + ".missing\nw " + good + ":10\nx echo |\n"
	for _, c := range []struct {
		rspecifier, keys string // of what is read; of what is skipped with a mark
		err              error
	}{
		{"scp:" + writeFile(t, "script", script), "u v! w x!", nil},
		{"scp:" + writeFile(t, "script", script+"\nu "+good+":2\n"), "u v! w x!", ErrCorrupt},
		{"ark:" + broken, "a b! d", nil},
		{"ark:" + good, "a b d", nil},
		{"ark:" + writeFile(t, "line", "a [ 1 ]\nb [ 2 ? ]\n\n7 8\n] [ 3\nd [ 4 ]\ne\nf [ 5 ]\n"), "a b! d e! f", nil},
		{"ark:" + writeFile(t, "end", "a [ 1 ]\nb [ 2 ? ]\n\n7 8\n"), "a", ErrCorrupt},
		{"ark:" + writeFile(t, "binary", "a \x00BFV \x04\x01\x00\x00\x00....b \x00BFM \x04\x01\x00\x00\x00\x04\x01\x00\x00\x00....c \x00BFV \x04\x00\x00\x00\x00"), "a b! c", nil},
		{"ark:" + writeFile(t, "noise", "a \x00BFV \x04\x01\x00\x00\x00....b \x00BFX \x04 d [ 4 ]\n"), "a", ErrCorrupt},
	} {
		r, err := NewTableReader(new(Opener), c.rspecifier, VectorHolder())
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		last := int64(-1)
		for {
			if r.Next() {
				keys = append(keys, r.Key())
			} else if more, _ := r.Skip(); more {
				keys = append(keys, r.Key()+"!")
			} else {
				break
			}
			read, size := r.Position()
			if read <= last || read > size {
				t.Errorf("%s: at byte %d of %d after %d", c.rspecifier, read, size, last)
			}
			last = read
		}
		if got := strings.Join(keys, " "); got != c.keys {
			t.Errorf("%s: %q, want %q", c.rspecifier, got, c.keys)
		}
		if err := r.Close(); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.rspecifier, err, c.err)
		}
	}
}

// TestTableLookup looks up keys in all orders that the options allow.
func TestTableLookup(t *testing.T) {
	file := writeFile(t, "table", texts)
	script := writeFile(t, "script", "a "+file+":2\nb "+file+":10\nd "+file+":20\n")
	unsorted := writeFile(t, "unsorted", "b [ 2 2 ]\na [ 1 ]\n")
	for _, c := range []struct {
		rspecifier, asked, found string
		err                      error
	}{
		{"ark:" + file, "d a x b a", "d a b a", nil},
		{"ark,o:" + file, "d a b a", "d a b", nil},
		{"ark,s:" + file, "b c a d a", "b a d a", nil},
		{"ark,s,cs:" + file, "a b b c d", "a b b d", nil},
		{"ark,cs:" + file, "b a", "b", ErrOrder},
		{"ark,s:" + unsorted, "c", "", ErrOrder},
		{"scp:" + script, "d a x b a", "d a b a", nil},
	} {
		l, err := NewTableLookup(new(Opener), c.rspecifier, VectorHolder())
		if err != nil {
			t.Errorf("%s: %v", c.rspecifier, err)
			continue
		}
		var found []string
		for key := range strings.FieldsSeq(c.asked) {
			v, ok, lerr := l.Lookup(key)
			if lerr != nil {
				err = lerr
				break
			}
			if ok {
				found = append(found, key)
				if want := map[string]int{"a": 1, "b": 2, "d": 1}[key]; len(v) != want {
					t.Errorf("%s: %s has %d elements, want %d", c.rspecifier, key, len(v), want)
				}
			}
		}
		if got := strings.Join(found, " "); got != c.found || !errors.Is(err, c.err) {
			t.Errorf("%s: asked %s, found %q, %v; want %q, %v", c.rspecifier, c.asked, got, err, c.found, c.err)
		}
		l.Close()
	}
}

// TestTableLookupNotes: of an archive in a file, a lookup keeps places instead of objects, and
// finds the same in any order as one that keeps them.
func TestTableLookupNotes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var data bytes.Buffer
	var keys []string
	for i := range 60 {
		m := Matrix{Rows: 1 + rnd.IntN(300), Cols: 1 + rnd.IntN(100)}
		m.Stride = m.Cols
		m.Data = make([]float32, m.Rows*m.Cols)
		for k := range m.Data {
			m.Data[k] = rnd.Float32()
		}
		keys = append(keys, fmt.Sprintf("key%d", i))
		data.WriteString(keys[i] + " ")
		if i%3 > 0 {
			data.WriteString("\x00B")
		}
		w := NewWriter(&data, i%3 > 0)
		if w.Matrix(m); w.Flush() != nil {
			t.Fatal(w.Err())
		}
	}
	file := writeFile(t, "archive", "before"+data.String())
	kept, err := NewTableLookup(&Opener{Stdin: bytes.NewReader(data.Bytes())}, "ark:-", MatrixHolder())
	if err != nil {
		t.Fatal(err)
	}
	for _, options := range []string{"", ",o"} {
		noted, err := NewTableLookup(new(Opener), "ark"+options+":"+file+":6", MatrixHolder())
		if err != nil {
			t.Fatal(err)
		}
		order := rnd.Perm(len(keys))
		if options == "" {
			order = append(order, rnd.Perm(len(keys))...)
		}
		for _, i := range order {
			want, ok, err := kept.Lookup(keys[i])
			got, found, err2 := noted.Lookup(keys[i])
			if !ok || !found || err != nil || err2 != nil || got.Rows != want.Rows || !slices.Equal(got.Data, want.Data) {
				t.Fatalf("%s: %v %v, %v %v, %d rows for %d", keys[i], ok, err, found, err2, got.Rows, want.Rows)
			}
		}
		if _, ok, err := noted.Lookup("none"); ok || err != nil {
			t.Error(ok, err)
		}
		if len(noted.held) > 0 {
			t.Errorf("%d objects are kept", len(noted.held))
		}
		if err := noted.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTableWriter writes text, the files of a script, and objects that can't be written.
func TestTableWriter(t *testing.T) {
	var out bytes.Buffer
	w, err := NewTableWriter(&Opener{Stdout: &out}, "ark,t:-", (*Writer).Vector)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"a", "b"} {
		if err := w.Write(key, []float32{float32(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write("c d", nil); !errors.Is(err, ErrSpecifier) {
		t.Errorf("a key with a space: %v", err)
	}
	if err := w.Close(); err != nil || out.String() != "a  [ 0 ]\nb  [ 1 ]\n" {
		t.Errorf("%q, %v", out.String(), err)
	}

	dir := t.TempDir()
	script := writeFile(t, "script", "a "+filepath.Join(dir, "x")+"\n")
	w, err = NewTableWriter(new(Opener), "scp,t:"+script, (*Writer).Vector)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write("b", nil); !errors.Is(err, ErrSpecifier) {
		t.Errorf("a key that is not in the script: %v", err)
	}
	w.err = nil
	if err := w.Write("a", []float32{5}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "x")); err != nil || string(data) != " [ 5 ]\n" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := NewTableWriter(new(Opener), "ark,scp:-,b", (*Writer).Vector); !errors.Is(err, ErrSpecifier) {
		t.Errorf("a script into standard output: %v", err)
	}
}

func FuzzArchive(f *testing.F) {
	f.Add([]byte(texts))
	f.Add([]byte("k \x00BFM \x04\x01\x00\x00\x00\x04\x01\x00\x00\x00abcdl [ 1 2\n3 4 ]\n"))
	for _, name := range []string{"feats_m5.ark", "feats.ark"} {
		data, err := os.ReadFile(compute + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 2500)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		allocated := alloctest.Start()
		r, err := NewTableReader(&Opener{Stdin: bytes.NewReader(data)}, "ark:-", MatrixHolder())
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if used := allocated(); used > alloctest.Bound(len(data)) {
				t.Errorf("%d bytes were allocated for %d", used, len(data))
			}
		}()
		objects := 0
		for r.Next() {
			objects++
			if m := r.Value(); len(m.Data) != m.Rows*m.Cols {
				t.Fatalf("%d by %d with %d elements", m.Rows, m.Cols, len(m.Data))
			}
		}
		if objects > len(data) {
			t.Fatalf("%d objects in %d bytes", objects, len(data))
		}
		r.Close()
	})
}

func FuzzScript(f *testing.F) {
	f.Add("a b.ark:12[0:3,1:2]")
	f.Add("a cat x |")
	f.Add("a -\nb -[0:1]\n\nc")
	f.Fuzz(func(t *testing.T, text string) {
		allocated := alloctest.Start()
		line, _, _ := strings.Cut(text, "\n")
		s, err := ParseScriptLine(line)
		if err == nil && (s.Key == "" || strings.ContainsAny(s.Key, " \t")) {
			t.Errorf("key %q", s.Key)
		}
		if err != nil && !errors.Is(err, ErrSpecifier) {
			t.Errorf("%v is of no kind", err)
		}
		r := newReader(strings.NewReader(text), "fuzz") // a whole script; what it names is not opened
		for lines := 0; ; lines++ {
			_, more, err := r.scriptLine()
			if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
				t.Errorf("%v does not say where", err)
			}
			if !more || err != nil {
				break
			}
			if lines > len(text) {
				t.Fatal("there is no end")
			}
		}
		if used := allocated(); used > alloctest.Bound(len(text)) {
			t.Errorf("%d bytes were allocated for %d", used, len(text))
		}
	})
}

// endless is an endless stream without newlines.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestEndlessScript checks that an endless first line is refused as a script.
func TestEndlessScript(t *testing.T) {
	r, err := NewTableReader(&Opener{Stdin: endless{}}, "scp:-", MatrixHolder())
	if err != nil {
		t.Fatal(err)
	}
	if r.Next() || !errors.Is(r.Err(), ErrCorrupt) {
		t.Errorf("got %v", r.Err())
	}
	long := "a " + strings.Repeat("b", maxScriptLine-2)
	for _, c := range []struct {
		text string
		ok   bool
	}{{long + "\n", true}, {long, true}, {long + "b\n", false}, {long + "b", false}} {
		r, err := NewReader(strings.NewReader(c.text), "script")
		if err != nil {
			t.Fatal(err)
		}
		if line, ok, err := r.scriptLine(); ok != c.ok || (err == nil) != c.ok || ok && "a "+line.Name != long {
			t.Errorf("%d bytes: %v, %v", len(c.text), ok, err)
		}
	}
}
