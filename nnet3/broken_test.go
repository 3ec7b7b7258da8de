package nnet3

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// littleModels returns small models of Kaldi's, binary and text.
func littleModels(t testing.TB) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for _, name := range []string{"testdata/random/r11_018/model.raw", "testdata/random/r11_035/model.raw", "testdata/random/r11_000/model.raw"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := readModelBytes(name, data); errors.Is(err, ErrUnsupported) {
			continue
		}
		files[name] = data
	}
	if len(files) == 0 {
		t.Skip("no model that is supported")
	}
	return files
}

// located reports whether an error says where it happened.
func located(err error) bool {
	var e *kaldiio.Error
	var c *configError
	return errors.As(err, &e) || errors.As(err, &c) || errors.Is(err, ErrNetwork) || errors.Is(err, ErrUnsupported)
}

// TestTruncatedModel truncates models at every byte. The result is always an error, never a
// network.
func TestTruncatedModel(t *testing.T) {
	for name, data := range littleModels(t) {
		for n := 0; n < len(data); n += longtest.Of(7, 1) {
			_, _, err := readModelBytes(name, data[:n])
			if err == nil {
				t.Fatalf("%s: %d bytes of %d make a network", name, n, len(data))
			}
			if !located(err) {
				t.Fatalf("%s: %d bytes of %d: %v does not say where", name, n, len(data), err)
			}
		}
	}
}

// TestFlippedModel flips bits all over models. Most flips change a number, which is legal. Others
// must give an error that says where, and nothing may panic.
func TestFlippedModel(t *testing.T) {
	for name, data := range littleModels(t) {
		for i := 0; i < len(data); i += longtest.Of(7, 1) {
			bit := byte(1) << (i % 8)
			data[i] ^= bit
			if _, _, err := readModelBytes(name, data); err != nil && !located(err) {
				t.Errorf("%s: byte %d: %v does not say where", name, i, err)
			}
			data[i] ^= bit
		}
	}
}

// TestAbsurdModel reads models that promise far too much.
func TestAbsurdModel(t *testing.T) {
	const lines = "\x00B<Nnet3> \ninput-node name=input dim=3\noutput-node name=output input=input objective=linear\n\n"
	const huge = "\x04\xff\xff\xff\x7f"
	for _, c := range []struct{ name, data string }{
		{"components", lines + "<NumComponents> " + huge},
		{"negative", lines + "<NumComponents> \x04\xff\xff\xff\xff"},
		{"parameters", lines + "<NumComponents> \x04\x01\x00\x00\x00<ComponentName> a <FixedAffineComponent> <LinearParams> FM " + huge + "\x04\x01\x00\x00\x00"},
		{"unknown", lines + "<NumComponents> \x04\x01\x00\x00\x00<ComponentName> a <MadeUpComponent> <LinearParams> FM "},
		{"triples", "\x00B<TransitionModel> <Topology> \x04" + huge[1:]},
		{"states", "\x00B<TransitionModel> <Topology> \x04\x00\x00\x00\x00\x04\x00\x00\x00\x00" + huge + huge + huge},
		{"long line", "<Nnet3> \n" + strings.Repeat("x", 1<<20)},
		{"wide descriptor", "<Nnet3> \ninput-node name=i dim=2000000000\noutput-node name=o input=Append(i, i)\n\n<NumComponents> 0 </Nnet3> "},
	} {
		r, err := kaldiio.NewReader(io.MultiReader(strings.NewReader(c.data)), c.name)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = ReadModel(r)
		runtime.ReadMemStats(&after)
		if err == nil || !located(err) {
			t.Errorf("%s: %v", c.name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
			t.Errorf("%s: %d bytes were allocated", c.name, used)
		}
	}
}

// TestUnsupported checks that one error lists everything missing that a model needs.
func TestUnsupported(t *testing.T) {
	const model = `<Nnet3> 
input-node name=input dim=3
component-node name=a component=a input=Ofset(input, 1)
component-node name=b component=b input=a
component-node name=c component=c input=b
component-node name=d component=d input=input
output-node name=output input=c objective=linear

<NumComponents> 4 
<ComponentName> a <MadeUpComponent> <Dim> 3 <Thing>  [ 1 2 3 ]
</MadeUpComponent> 
<ComponentName> b <NoOpComponent> <Dim> 3 <BackpropScale> 1 </NoOpComponent> 
<ComponentName> c <MadeUpComponent> <Dim> 3 </MadeUpComponent> 
<ComponentName> d <AfineComponent> </AfineComponent> 
</Nnet3> `
	_, _, err := readModelBytes("m.raw", []byte(model))
	if !errors.Is(err, ErrUnsupported) {
		t.Fatal(err)
	}
	var m *multierror.Error
	if !errors.As(err, &m) {
		t.Fatalf("%v is not a list", err)
	}
	want := []string{
		`component a, c: type "MadeUpComponent" is not supported`,
		`component d: type "AfineComponent" is not supported; did you mean AffineComponent?`,
		"component-node a: descriptor, column 1: there is no function Ofset; did you mean Offset?",
	}
	if len(m.Errors) != len(want) {
		t.Fatalf("%d faults, want %d: %v", len(m.Errors), len(want), err)
	}
	for i, w := range want {
		if !strings.Contains(m.Errors[i].Error(), w) {
			t.Errorf("%v, want %s", m.Errors[i], w)
		}
	}
}

// TestOtherFiles checks that errors say what a file is if it is not a network.
func TestOtherFiles(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{"<Nnet> 3 ", "nnet1 or nnet2"},
		{"\x00B<DIMENSION> ", "Gaussian mixtures"},
		{"<Nnet3Eg> ", "training examples"},
		{"hello world ", `expected token <Nnet3>, got "hello"`},
		{"", "input ends too early"},
		{"<Nnet3> input-node name=a dim=3\n", "expected a new line"},
		{"<Nnet3> \ncomponent name=a type=NoOpComponent dim=3\n\n", "a model holds no component lines"},
		{"<Nnet3> \n\n<NumComponents> 1 <ComponentName> a AffineComponent ", "expected the token of a component"},
		{"<Nnet3> \n\n<NumComponents> 2 <ComponentName> a <NoOpComponent> <Dim> 3 <BackpropScale> 1 </NoOpComponent> <ComponentName> a ", "two components called a"},
	} {
		_, _, err := readModelBytes("file", []byte(c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "file") {
			t.Errorf("%q: %v, want %s", c.data, err, c.want)
		}
	}
}

func FuzzReadModel(f *testing.F) {
	for _, name := range []string{"testdata/random/r11_018/model.raw", "testdata/random/r11_005/model.raw", "testdata/random/r11_012/model.raw"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	mdl, err := os.ReadFile("testdata/compute/tdnnf.mdl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(mdl[:1200])
	f.Add([]byte("<Nnet3> \ninput-node name=i dim=2\noutput-node name=o input=Sum(i, Const(1, 2))\n\n<NumComponents> 0 \n</Nnet3> <LeftContext> 0 <RightContext> 0 <Priors>  [ ]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var am *AmNnetSimple
		var r *kaldiio.Reader
		var err error
		alloctest.Check(t, "reading", len(data), func() { am, r, err = readModelBytes("fuzz", data) })
		if err != nil {
			if !located(err) {
				t.Fatalf("%v does not say where", err)
			}
			return
		}
		var out bytes.Buffer
		w := kaldiio.NewWriter(&out, r.Binary())
		w.Header()
		if err := am.Write(w); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readModelBytes("written", out.Bytes()); err != nil {
			t.Fatalf("what was written can't be read: %v", err)
		}
	})
}
