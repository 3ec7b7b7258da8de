package kaldiio_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// TestLFS: an archive, a script or a file of one matrix that Git LFS did not fetch is called that, also where an object
// is said to begin within the file, or behind its end. A key may begin like one, even if nothing follows yet.
func TestLFS(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	pointer := write("feats.ark", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n")
	for _, table := range []string{
		"ark:" + pointer, "scp:" + pointer, "scp:" + write("whole", "a "+pointer+"\n"), "scp:" + write("inside", "a "+pointer+":20\n"), "scp:" + write("beyond", "a "+pointer+":5000\n"),
	} {
		r, err := kaldiio.NewTableReader(new(kaldiio.Opener), table, kaldiio.MatrixHolder())
		if err == nil {
			for r.Next() {
			}
			err = r.Close()
		}
		if !errors.Is(err, fileio.ErrLFS) || !strings.Contains(err.Error(), pointer) {
			t.Errorf("%s: %v", table, err)
		}
	}
	small := write("small.ark", "a  [ 1 2 ]\nb  [ 3 4 ]\n")
	r, err := kaldiio.NewTableReader(new(kaldiio.Opener), "scp:"+write("small", "b "+small+":14\na "+small+":3\n"), kaldiio.VectorHolder())
	if err != nil {
		t.Fatal(err)
	}
	sum := float32(0)
	for r.Next() {
		sum = 10*sum + r.Value()[0]
	}
	if err := r.Close(); err != nil || sum != 31 {
		t.Errorf("a small archive by offsets: %v, %v", sum, err)
	}
	in, out := io.Pipe()
	go func() {
		io.WriteString(out, "vera  [ 1 ]\n")
		out.CloseWithError(io.ErrUnexpectedEOF)
	}()
	live, err := kaldiio.NewTableReader(&kaldiio.Opener{Stdin: in}, "ark:-", kaldiio.VectorHolder())
	if err != nil {
		t.Fatal(err)
	}
	if !live.Next() || live.Key() != "vera" || live.Value()[0] != 1 {
		t.Errorf("a stream: %v", live.Err())
	}
}
