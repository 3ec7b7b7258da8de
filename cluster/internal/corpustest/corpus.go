// Package corpustest makes corpora for tests, and scores them without a cluster.
package corpustest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/tool/standard"
)

// A Corpus is in files below a directory.
type Corpus struct {
	Dir         string
	Model       string // takes i-vectors
	Features    string // scp:…
	Ivectors    string // scp:…, by speaker
	Speakers    string // ark:…
	FrameCounts string // ark:…
	Keys        []string
	Frames      []int
	Lines       []string // of the script of features, without ends
}

// Dimensions of the features, the i-vectors and the output.
const (
	dim     = 12
	ivector = 5
	network = `
input-node name=input dim=12
input-node name=ivector dim=5
component name=tdnn type=NaturalGradientAffineComponent input-dim=41 output-dim=24
component-node name=tdnn component=tdnn input=Append(Offset(input, -1), input, Offset(input, 2), ReplaceIndex(ivector, t, 0))
component name=relu type=RectifiedLinearComponent dim=24
component-node name=relu component=relu input=tdnn
component name=out type=NaturalGradientAffineComponent input-dim=24 output-dim=7
component-node name=out component=out input=relu
output-node name=output input=out
`
)

// PerArchive is the number of utterances of an archive of features. Their frames are
// FramesPerArchive together.
const PerArchive, FramesPerArchive = 50, 1927

// New makes a corpus.
func New(t testing.TB, utterances int) *Corpus {
	t.Helper()
	c := &Corpus{Dir: t.TempDir()}
	config := c.Path("net.config")
	Write(t, config, network)
	c.Model = c.Path("net.raw")
	Nnopt(t, 0, "init", config, c.Model)
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func(rows, cols int) kaldiio.Matrix {
		m := kaldiio.Matrix{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
		for i := range m.Data {
			m.Data[i] = float32(rnd.NormFloat64())
		}
		return m
	}
	var counts, speakers strings.Builder
	for first := 0; first < utterances; first += PerArchive {
		archive := c.Path(fmt.Sprintf("feats.%d.ark", first/PerArchive))
		c.archive(t, archive, func(put func(string, kaldiio.Matrix) error) error {
			for i := first; i < min(first+PerArchive, utterances); i++ {
				key, frames := fmt.Sprintf("utt%05d", i), 16+(i*7)%PerArchive*47/PerArchive
				c.Keys, c.Frames = append(c.Keys, key), append(c.Frames, frames)
				fmt.Fprintf(&counts, "%s %d\n", key, frames)
				fmt.Fprintf(&speakers, "%s spk%d\n", key, i/10)
				if err := put(key, random(frames, dim)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	c.Features = c.Script(t, "feats.scp", c.Lines)
	c.FrameCounts, c.Speakers = "ark:"+c.Path("utt2num_frames"), "ark:"+c.Path("utt2spk")
	Write(t, c.Path("utt2num_frames"), counts.String())
	Write(t, c.Path("utt2spk"), speakers.String())
	c.Ivectors = "scp:" + c.Path("ivectors.scp")
	WriteArchive(t, c.Path("ivectors.ark"), c.Path("ivectors.scp"), (*kaldiio.Writer).Vector, func(put func(string, []float32) error) error {
		for i := 0; i < utterances; i += 10 {
			if err := put(fmt.Sprintf("spk%d", i/10), random(1, ivector).Data); err != nil {
				return err
			}
		}
		return nil
	})
	return c
}

// archive writes an archive of features and adds its lines.
func (c *Corpus) archive(t testing.TB, name string, fill func(put func(string, kaldiio.Matrix) error) error) {
	t.Helper()
	script := strings.TrimSuffix(name, "ark") + "scp"
	WriteArchive(t, name, script, (*kaldiio.Writer).Matrix, fill)
	c.Lines = append(c.Lines, Lines(t, script)...)
}

// WriteArchive writes an archive and its script.
func WriteArchive[T any](t testing.TB, archive, script string, write func(*kaldiio.Writer, T), fill func(put func(string, T) error) error) {
	t.Helper()
	w, err := kaldiio.NewTableWriter(new(kaldiio.Opener), "ark,scp:"+archive+","+script, write)
	if err == nil {
		err = errors.Join(fill(w.Write), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Path returns the name of a file of the corpus.
func (c *Corpus) Path(name string) string { return filepath.Join(c.Dir, name) }

// Script writes a script and returns its rspecifier.
func (c *Corpus) Script(t testing.TB, name string, lines []string) string {
	t.Helper()
	Write(t, c.Path(name), strings.Join(lines, "\n")+"\n")
	return "scp:" + c.Path(name)
}

// Run scores features by nnopt run, with the i-vectors of the corpus, and returns the script of the
// rows. The exit status must be as given.
func (c *Corpus) Run(t testing.TB, status int, features string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "run")
	args := append([]string{"run", "--ivectors=" + c.Ivectors, "--utt2spk=" + c.Speakers}, flags...)
	Nnopt(t, status, append(args, c.Model, features, "ark,scp:"+out+".ark,"+out+".scp")...)
	return out + ".scp"
}

// Nnopt runs the program nnopt, which must exit with the given status.
func Nnopt(t testing.TB, status int, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if got := (standard.Program{}).Run(t.Context(), args, nil, &out, &out); got != status {
		t.Fatalf("nnopt %q: exit status %d, want %d\n%s", args, got, status, out.String())
	}
}

// Same fails the test unless two scripts have the same keys in the same order, and the same bits.
// It returns the keys.
func Same(t testing.TB, got, want string) (keys []string) {
	t.Helper()
	a, b := rows(t, got), rows(t, want)
	defer a.Close()
	defer b.Close()
	for b.Next() {
		if !a.Next() {
			t.Fatalf("%s ends before key %s: %v", got, b.Key(), a.Err())
		}
		x, y := a.Value(), b.Value()
		if a.Key() != b.Key() || x.Rows != y.Rows || x.Cols != y.Cols {
			t.Fatalf("%s has %s, %d by %d; want %s, %d by %d", got, a.Key(), x.Rows, x.Cols, b.Key(), y.Rows, y.Cols)
		}
		for i := range x.Data {
			if math.Float32bits(x.Data[i]) != math.Float32bits(y.Data[i]) {
				t.Fatalf("key %s: element %d is %g, want %g", a.Key(), i, x.Data[i], y.Data[i])
			}
		}
		keys = append(keys, a.Key())
	}
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	if a.Next() {
		t.Fatalf("%s goes on with key %s", got, a.Key())
	}
	if err := a.Err(); err != nil {
		t.Fatal(err)
	}
	return keys
}

func rows(t testing.TB, script string) *kaldiio.TableReader[kaldiio.Matrix] {
	t.Helper()
	r, err := kaldiio.NewTableReader(new(kaldiio.Opener), "scp:"+script, kaldiio.MatrixHolder())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Lines returns the lines of a file, without their ends.
func Lines(t testing.TB, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Write writes a file.
func Write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
