package cluster

import (
	"context"
	"encoding/json"
	"fmt"
)

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
