package nnet3

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// ErrRead means that a file is not a readable model.
var ErrRead = errors.New("can't read model")

// Load reads a network from a file: a model in Kaldi's format (raw or .mdl, binary or text), or
// config lines. A network from config lines gets random parameters, which depend on the seed alone,
// and no statistics of batch normalization: see package pipeline.
func (l Loader) Load(name string, seed uint64) (nn *Nnet, fromConfig bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrRead, err)
	}
	defer f.Close()
	// The reader of models takes a regular file as it is: it refuses sizes that exceed what is left
	// of the file, and a buffer would hide how much that is. What can't be read at an offset, such
	// as a pipe, has no size either.
	var head [64]byte
	if n, err := f.ReadAt(head[:], 0); err == nil || err == io.EOF {
		return l.load(head[:n], f, name, seed)
	}
	return l.LoadFrom(f, name, seed)
}

// LoadFrom is Load for a stream. The name appears in errors.
func (l Loader) LoadFrom(r io.Reader, name string, seed uint64) (nn *Nnet, fromConfig bool, err error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(64)
	if err != nil && err != io.EOF {
		return nil, false, fmt.Errorf("%w %s: %w", ErrRead, name, err)
	}
	return l.load(head, in, name, seed)
}

// load reads a network from r, which begins with head.
func (l Loader) load(head []byte, r io.Reader, name string, seed uint64) (nn *Nnet, fromConfig bool, err error) {
	if len(head) == 0 {
		return nil, false, fmt.Errorf("%w: %s is empty", ErrRead, name)
	}
	if err := fileio.CheckLFS(head); err != nil {
		return nil, false, fmt.Errorf("%w %s: %w", ErrRead, name, err)
	}
	if kaldiio.IsGzip(head) {
		return nil, false, fmt.Errorf("%w: %s is compressed with gzip: unpack it first (gunzip -c)", ErrRead, name)
	}
	if !isModel(head) {
		if bytes.IndexByte(head, 0) >= 0 {
			return nil, false, fmt.Errorf("%w: %s is binary, but not a model: is it an archive?", ErrRead, name)
		}
		nn, err = l.ParseConfig(r, name, seed)
		return nn, true, err
	}
	am, err := l.ReadModelFrom(r, name)
	if err != nil {
		return nil, false, err
	}
	return am.Nnet, false, nil
}

// isModel reports whether a file that begins like this holds a model rather than config lines: it
// is binary, or its first word is a token.
func isModel(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\x00B")) {
		return true
	}
	head = bytes.TrimLeft(head, " \t\r\n")
	return len(head) > 0 && head[0] == '<'
}

// ReadModelFrom is ReadModel for a stream that begins with a model. The name appears in errors.
func (l Loader) ReadModelFrom(r io.Reader, name string) (*AmNnetSimple, error) {
	in, err := kaldiio.NewReader(r, name)
	if err != nil {
		return nil, err
	}
	if !in.Binary() {
		// Without this, config lines would be a missing token.
		if first, err := in.PeekNonSpace(); err == nil && first != '<' {
			return nil, in.Errorf("this is not a model in Kaldi's format (the verb init makes one from config lines, and eval runs ONNX models)")
		}
	}
	return l.ReadModel(in)
}
