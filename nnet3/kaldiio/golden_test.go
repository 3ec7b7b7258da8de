package kaldiio

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
)

const compute = "../testdata/compute/"

// readTable reads a whole table of matrices.
func readTable(t *testing.T, rspecifier string) (keys []string, values []Matrix) {
	t.Helper()
	r, err := NewTableReader(new(Opener), rspecifier, MatrixHolder())
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range r.All() {
		keys = append(keys, k)
		values = append(values, v)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return keys, values
}

// TestArchivesAgree reads Kaldi's archives in every encoding and compares them with what Kaldi
// decodes, printed with seven digits.
func TestArchivesAgree(t *testing.T) {
	for _, c := range []struct{ archive, decoded string }{
		{"feats.ark", "feats_ark_decoded.txt"},
		{"feats_m3.ark", "feats_m3_decoded.txt"},
		{"feats_m4.ark", "feats_m4_decoded.txt"},
		{"feats_m5.ark", "feats_m5_decoded.txt"},
		{"feats_float.ark", "feats.txt"},
	} {
		t.Run(c.archive, func(t *testing.T) {
			keys, got := readTable(t, "ark:"+compute+c.archive)
			wantKeys, want := readTable(t, "ark:"+compute+c.decoded)
			if len(keys) != 4 || len(wantKeys) != 4 {
				t.Fatalf("%d and %d objects, want 4", len(keys), len(wantKeys))
			}
			for i := range keys {
				if keys[i] != wantKeys[i] {
					t.Errorf("key %d is %s, want %s", i, keys[i], wantKeys[i])
				}
				sameText(t, keys[i], want[i], got[i])
			}
		})
	}
}

// sameText compares matrices to seven digits.
func sameText(t *testing.T, name string, want, got Matrix) {
	t.Helper()
	if want.Rows != got.Rows || want.Cols != got.Cols {
		t.Fatalf("%s is %d by %d, want %d by %d", name, got.Rows, got.Cols, want.Rows, want.Cols)
	}
	for i := range want.Rows {
		for j, w := range want.Row(i) {
			g := got.Row(i)[j]
			if string(appendFloat(nil, float64(w))) != string(appendFloat(nil, float64(g))) {
				t.Fatalf("%s: element (%d, %d) is %v, want %v", name, i, j, g, w)
			}
		}
	}
}

// TestCompressionAgrees compresses the features as Kaldi did and compares the bytes of the
// archives.
func TestCompressionAgrees(t *testing.T) {
	keys, feats := readTable(t, "ark:"+compute+"feats.txt")
	for _, c := range []struct {
		archive string
		method  CompressionMethod
	}{
		{"feats.ark", CompressAuto},
		{"feats_m3.ark", compressTwoByte},
		{"feats_m4.ark", compressTwoByteSigned},
		{"feats_m5.ark", compressOneByte},
	} {
		t.Run(c.archive, func(t *testing.T) {
			want, err := os.ReadFile(compute + c.archive)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(t.TempDir(), "out.ark")
			w, err := NewTableWriter(new(Opener), "ark:"+name, func(w *Writer, m Matrix) { w.CompressedMatrix(m, c.method) })
			if err != nil {
				t.Fatal(err)
			}
			for i := range keys {
				if err := w.Write(keys[i], feats[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				n := 0
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						n++
					}
				}
				t.Errorf("%d bytes of %d (%d) differ", n, len(want), len(got))
			}
		})
	}
}

// TestFloatArchiveRoundTrip writes an archive and its script as Kaldi does.
func TestFloatArchiveRoundTrip(t *testing.T) {
	keys, feats := readTable(t, "ark:"+compute+"feats_float.ark")
	dir := t.TempDir()
	ark, scp := filepath.Join(dir, "out.ark"), filepath.Join(dir, "out.scp")
	w, err := NewTableWriter(new(Opener), "ark,scp:"+ark+","+scp, (*Writer).Matrix)
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		if err := w.Write(keys[i], feats[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(compute + "feats_float.ark")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(ark)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the archive is not the one that was read")
	}
	again, byScript := readTable(t, "scp:"+scp)
	for i := range keys {
		if again[i] != keys[i] {
			t.Errorf("the script has key %s, want %s", again[i], keys[i])
		}
		for j, v := range feats[i].Data {
			if math.Float32bits(v) != math.Float32bits(byScript[i].Data[j]) {
				t.Fatalf("%s: element %d is %v, want %v", keys[i], j, byScript[i].Data[j], v)
			}
		}
	}
}

// TestScriptOfKaldi reads a script whose archive is beside it.
func TestScriptOfKaldi(t *testing.T) {
	t.Chdir(compute)
	keys, got := readTable(t, "scp:feats.scp")
	wantKeys, want := readTable(t, "ark:feats.ark")
	if len(keys) != len(wantKeys) {
		t.Fatalf("%d objects, want %d", len(keys), len(wantKeys))
	}
	for i := range keys {
		if keys[i] != wantKeys[i] {
			t.Errorf("key %d is %s, want %s", i, keys[i], wantKeys[i])
		}
		sameText(t, keys[i], want[i], got[i])
	}
}
