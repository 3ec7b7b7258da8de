package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
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
// One name for an archive, and for its script, is not enough: two workers that score one shard at the
// same time, one of them with an utterance less because a read failed, would mix the archive of one
// with the script of the other.
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
	a.table.Matrix(kaldiio.Matrix(m))
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

// A manifest says that a shard is complete, and what was made of it. It comes into being after the
// files that it names.
type manifest struct {
	Shard  string `json:"shard"`
	Run    string `json:"run"`    // in which it was made
	Recipe recipe `json:"recipe"` // with which it was made

	Archive       string `json:"archive"` // in the directory of the manifest
	ArchiveBytes  int64  `json:"archive_bytes"`
	ArchiveSHA256 string `json:"archive_sha256"`
	Script        string `json:"script"`
	ScriptBytes   int64  `json:"script_bytes"`

	Utterances     int     `json:"utterances"` // scored
	Frames         int64   `json:"frames"`     // of those
	Rows           int64   `json:"rows"`
	Seconds        float64 `json:"seconds"`
	ComputeSeconds float64 `json:"compute_seconds"` // summed over the utterances that were scored at once
	RepeatedReads  int64   `json:"repeated_reads"`
	Failures       []note  `json:"failures,omitempty"`
	NotFinite      []note  `json:"not_finite,omitempty"` // scored, with features or i-vectors that are NaN or infinite

	skipped bool // the shard was complete already
}

// A note tells something of an utterance of a shard.
type note struct {
	Index     int    `json:"index"` // in the list of the shard
	Utterance string `json:"utterance"`
	Reason    string `json:"reason"`
}

// readManifest returns the manifest of a shard, nil if the shard is not complete.
func readManifest(ctx context.Context, w *work, id string) *manifest {
	text, err := w.readFile(ctx, shardsDir, id+".json")
	if err != nil {
		return nil
	}
	m := new(manifest)
	if json.Unmarshal(text, m) != nil || m.Shard != id {
		return nil
	}
	// A manifest is written after its files, but they may be removed or truncated later. Sizes show
	// that without reading the archives again; the digest is for users who want to be sure.
	for _, f := range []struct {
		name  string
		bytes int64
	}{{m.Archive, m.ArchiveBytes}, {m.Script, m.ScriptBytes}} {
		if n, err := w.store().size(ctx, w.path(shardsDir, f.name)); err != nil || n != f.bytes {
			return nil
		}
	}
	return m
}

// complete reports whether a shard with this manifest, which may be nil, need not be scored.
func (m *manifest) complete(w *work) bool {
	return m != nil && (len(m.Failures) == 0 || !w.RetryFailed || m.Run == w.Run)
}

// write writes the manifest.
func (m *manifest) write(ctx context.Context, w *work) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("manifest of shard %s: %w", m.Shard, err)
	}
	return w.writeFile(ctx, append(text, '\n'), shardsDir, m.Shard+".json")
}
