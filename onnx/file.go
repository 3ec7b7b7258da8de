package onnx

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/nnopt/nnopt/internal/fileio"
)

// Parse reads a model. The model keeps parts of data, which must not change any more.
func Parse(data []byte) (*Model, error) {
	m := new(Model)
	if err := parse(m, data); err != nil {
		return nil, err
	}
	if m.Graph == nil {
		return nil, fmt.Errorf("%w: it has no graph", ErrFormat)
	}
	return m, nil
}

// ParseTensor reads a TensorProto, as files with the extension .pb hold it. The tensor keeps parts of
// data.
func ParseTensor(data []byte) (*Tensor, error) {
	t := new(Tensor)
	return t, parse(t, data)
}

func parse(m proto, data []byte) error {
	d := &decoder{left: minMemory + memoryFactor*int64(len(data))}
	if d.decode(m, data); d.err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, d.err)
	}
	return nil
}

// ReadFile reads a model from a file.
func ReadFile(name string) (*Model, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	m, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// Write writes a model. Where nothing has changed since it was read, the bytes are the same.
func (m *Model) Write(w io.Writer) error { return write(w, m) }

// Write writes a tensor as files with the extension .pb hold it.
func (m *Tensor) Write(w io.Writer) error { return write(w, m) }

func write(w io.Writer, m proto) error {
	out := bufio.NewWriterSize(w, 1<<16) // which remembers its first error
	x := &writer{plans: make(map[*message]plan), put: func(b []byte) { _, _ = out.Write(b) }}
	if x.plan(m); x.err != nil {
		return x.err
	}
	x.message(m)
	return out.Flush()
}

// WriteFile writes a model to a file, which is complete or stays as it was.
func (m *Model) WriteFile(ctx context.Context, name string) error {
	return fileio.Write(ctx, name, m.Write)
}
