package component

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// models returns the raw models of the reference cases that come with the project and of those in
// the folder that the environment variable NNOPT_GOLDEN names.
func models(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, dir := range []string{"../testdata/*", "../testdata/*/*", os.Getenv("NNOPT_GOLDEN") + "/*/*"} {
		for _, name := range []string{"model.raw", "gradient.raw"} {
			found, err := filepath.Glob(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
	}
	if len(files) == 0 {
		t.Skip("no reference models")
	}
	return files
}

// readModel calls f with each component of a raw model and the bytes that it was read from.
func readModel(data []byte, name string, f func(name string, c Component, written []byte) error) error {
	r, err := kaldiio.NewReader(bytes.NewReader(data), name)
	if err != nil {
		return err
	}
	if err := r.Expect("<Nnet3>"); err != nil {
		return err
	}
	for line, first := "", true; first || line != ""; first = false {
		if line, err = r.Line(); err != nil {
			return err
		}
		if first && line == "" {
			line = " "
		}
	}
	if err := r.Expect("<NumComponents>"); err != nil {
		return err
	}
	n, err := r.Int()
	if err != nil {
		return err
	}
	for range n {
		if err := r.Expect("<ComponentName>"); err != nil {
			return err
		}
		name, err := r.Token()
		if err != nil {
			return err
		}
		begin := r.Offset()
		token, err := r.Token()
		if err != nil {
			return err
		}
		typ := strings.Trim(token, "<>")
		c, ok := kaldi.New(typ)
		if !ok {
			return fmt.Errorf("%s: unknown type %s", name, typ)
		}
		if err := kaldi.Read(c, r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := f(name, c, data[begin:r.Offset()]); err != nil {
			return err
		}
	}
	return r.Expect("</Nnet3>")
}

// TestRoundTripOfModels checks that writing a model that was read gives the same bytes.
func TestRoundTripOfModels(t *testing.T) {
	types := map[string]int{}
	for _, file := range models(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		binary := bytes.HasPrefix(data, []byte("\x00B"))
		err = readModel(data, file, func(name string, c Component, written []byte) error {
			types[c.Type()]++
			var b bytes.Buffer
			w := kaldiio.NewWriter(&b, binary)
			if err := Write(Copy(c), w); err != nil {
				return err
			}
			if err := w.Flush(); err != nil {
				return err
			}
			if binary && !bytes.Equal(b.Bytes(), written) {
				return fmt.Errorf("%s: %s: wrote\n%.500q\ninstead of\n%.500q", file, name, b.Bytes(), written)
			}
			if !binary && strings.Join(strings.Fields(b.String()), " ") != strings.Join(strings.Fields(string(written)), " ") {
				return fmt.Errorf("%s: %s: wrote\n%.500s\ninstead of\n%.500s", file, name, b.Bytes(), written)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%v", err)
		}
	}
	t.Logf("%d types: %v", len(types), types)
}

// TestConfigLinesOfModels checks that a component made from a configuration line of a model has the
// type, the dimensions and the settings of the one in the model.
func TestConfigLinesOfModels(t *testing.T) {
	checked := 0
	for _, file := range models(t) {
		if filepath.Base(file) != "model.raw" {
			continue
		}
		config, err := os.ReadFile(filepath.Join(filepath.Dir(file), "model.config"))
		if err != nil {
			t.Fatal(err)
		}
		made := map[string]Component{}
		for text := range strings.Lines(string(config)) {
			line, err := ParseConfigLine(text)
			if err != nil {
				t.Fatalf("%s: %q: %v", file, text, err)
			}
			if line.First != "component" {
				continue
			}
			name, _ := line.Value("name")
			typ, _ := line.Value("type")
			c, ok := kaldi.New(typ)
			if !ok {
				t.Fatalf("%s: unknown type %s", file, typ)
			}
			if err := Init(c, line); err != nil || line.Unused() != "" {
				t.Errorf("%s: %q: unused %q, error %v", file, text, line.Unused(), err)
			}
			made[name] = c
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		err = readModel(data, file, func(name string, c Component, _ []byte) error {
			m := made[name]
			if tm, ok := c.(TestModer); ok {
				m.(TestModer).SetTestMode(tm.TestMode())
			}
			if got, want := settings(m), settings(c); got != want || m.Properties() != c.Properties() {
				return fmt.Errorf("%s: %s: made %s\nread %s", file, name, got, want)
			}
			checked++
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d components", checked)
}

// settings describes a component without its statistics and the sizes of its parameters.
func settings(c Component) string {
	var kept []string
	for _, part := range strings.Split(Info(c), ", ") {
		if key, _, _ := strings.Cut(part, "="); key != "count" && key != "dropout-proportion" && !strings.HasSuffix(key, "-rms") || key == "target-rms" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ", ")
}

// TestPropertiesOfModels checks that the properties are Kaldi's, except for reordersIndexes.
func TestPropertiesOfModels(t *testing.T) {
	checked := 0
	for _, file := range models(t) {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "computation.json"))
		if err != nil || filepath.Base(file) != "model.raw" {
			continue
		}
		var kaldi struct {
			Components []struct {
				Name    string
				Props   Properties
				In, Out int
			}
		}
		if err := json.Unmarshal(text, &kaldi); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		err = readModel(data, file, func(name string, c Component, _ []byte) error {
			for _, k := range kaldi.Components {
				if k.Name != name {
					continue
				}
				checked++
				if want := k.Props &^ reordersIndexes; c.Properties() != want || c.InputDim() != k.In || c.OutputDim() != k.Out {
					return fmt.Errorf("%s: %s %s (%d -> %d): properties %v, want %v (%d -> %d)",
						file, name, c.Type(), c.InputDim(), c.OutputDim(), c.Properties(), want, k.In, k.Out)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d components", checked)
}
