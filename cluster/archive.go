package cluster

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"strings"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// An archive is an archive of a shard in the making. Its name contains a digest of its bytes, so it
// is in a scratch file until they are known.
//
// kaldiio.WriteArchive is not enough here: two workers that score one shard at the same time, one
// of them with an utterance less because a read failed, would mix the archive of one with the
// script of the other.
type archive struct {
	w      *work
	id     string
	file   *os.File
	hash   hash.Hash
	bytes  int64
	table  *kaldiio.Writer
	script strings.Builder // without the name of the archive: key, offset
}

func newArchive(w *work, id string) (*archive, error) {
	file, err := w.store().scratch(w.path(shardsDir), id)
	if err != nil {
		return nil, err
	}
	a := &archive{w: w, id: id, file: file, hash: sha256.New()}
	a.table = kaldiio.NewWriter(a, true)
	return a, nil
}

// Write writes bytes of the table.
func (a *archive) Write(p []byte) (int, error) {
	n, err := a.file.Write(p)
	a.hash.Write(p[:n])
	a.bytes += int64(n)
	return n, err
}

// put adds the rows of an utterance.
func (a *archive) put(key string, m kernel.Matrix) error {
	// The offset in a script is that of the object, after its key: so the key is flushed and
	// counted first.
	a.table.Token(key)
	if err := a.table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&a.script, "%s %d\n", key, a.bytes)
	a.table.Header()
	a.table.Matrix(kaldiio.Matrix{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Data})
	return a.table.Err()
}

// finish gives the archive its name, and writes its script.
func (a *archive) finish(ctx context.Context, m *manifest) error {
	if err := a.table.Flush(); err != nil {
		return err
	}
	m.ArchiveSHA256, m.ArchiveBytes = sumOf(a.hash), a.bytes
	m.Archive = fmt.Sprintf("%s.%s.ark", a.id, m.ArchiveSHA256[:idLength])
	m.Script = strings.TrimSuffix(m.Archive, "ark") + "scp"
	if err := a.w.store().commit(ctx, a.file, a.w.path(shardsDir, m.Archive)); err != nil {
		return err
	}
	name := join(a.w.Out, shardsDir, m.Archive)
	var text strings.Builder
	for line := range strings.Lines(a.script.String()) {
		key, offset, _ := strings.Cut(line, " ")
		fmt.Fprintf(&text, "%s %s:%s", key, name, offset)
	}
	m.ScriptBytes = int64(text.Len())
	return a.w.writeFile(ctx, []byte(text.String()), shardsDir, m.Script)
}

// drop removes an archive that is not finished.
func (a *archive) drop() {
	a.file.Close()
	os.Remove(a.file.Name())
}
