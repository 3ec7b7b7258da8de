package pipeline

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/nnopt/nnopt/fileio"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// ErrRead means that a model could not be read from its file at all.
var ErrRead = errors.New("can't read model")

// Load reads a network from a file: a model in Kaldi's format (raw or .mdl, binary or text) or config lines, which are
// given random parameters that depend on nothing but the seed. Statistics of batch normalization, which only training
// yields, are left empty in a network from config lines: see Calibrate.
func Load(name string, seed uint64) (nn *nnet3.Nnet, fromConfig bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrRead, err)
	}
	defer f.Close()
	// The reader of models likes to know how large the file is, which a buffer in between would hide.
	var head [64]byte
	if n, err := f.ReadAt(head[:], 0); err == nil || err == io.EOF {
		return load(head[:n], f, name, seed)
	}
	return LoadFrom(f, name, seed)
}

// LoadFrom is Load for a stream. The name stands in errors.
func LoadFrom(r io.Reader, name string, seed uint64) (nn *nnet3.Nnet, fromConfig bool, err error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(64)
	if err != nil && err != io.EOF {
		return nil, false, fmt.Errorf("%w %s: %w", ErrRead, name, err)
	}
	return load(head, in, name, seed)
}

// load reads a network from r, which begins with head.
func load(head []byte, r io.Reader, name string, seed uint64) (nn *nnet3.Nnet, fromConfig bool, err error) {
	if len(head) == 0 {
		return nil, false, fmt.Errorf("%w: %s is empty", ErrRead, name)
	}
	if kaldiio.IsGzip(head) {
		return nil, false, fmt.Errorf("%w: %s is compressed with gzip: unpack it first (gunzip -c)", ErrRead, name)
	}
	if !isModel(head) {
		if bytes.IndexByte(head, 0) >= 0 {
			return nil, false, fmt.Errorf("%w: %s is binary, and does not begin like a model: is it an archive?", ErrRead, name)
		}
		nn, err = nnet3.ParseConfig(r, name, seed)
		return nn, true, err
	}
	source, err := kaldiio.NewReader(r, name)
	if err != nil {
		return nil, false, err
	}
	am, err := nnet3.ReadModel(source)
	if err != nil {
		return nil, false, err
	}
	return am.Nnet, false, nil
}

// isModel reports whether a file that begins like this holds a model rather than config lines: it is binary, or its first
// word is a token.
func isModel(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\x00B")) {
		return true
	}
	head = bytes.TrimLeft(head, " \t\r\n")
	return len(head) > 0 && head[0] == '<'
}

// Save writes a raw network to a file in Kaldi's format, as fileio.Write does.
func Save(ctx context.Context, nn *nnet3.Nnet, name string, binary bool) error {
	return fileio.Write(ctx, name, func(w io.Writer) error { return SaveTo(w, nn, binary) })
}

// SaveTo is Save for an open file.
func SaveTo(w io.Writer, nn *nnet3.Nnet, binary bool) error {
	out := kaldiio.NewWriter(w, binary)
	out.Header()
	if err := nn.Write(out); err != nil {
		return err
	}
	return out.Flush()
}
