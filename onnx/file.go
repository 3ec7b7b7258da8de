package onnx

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/nnopt/nnopt/internal/fileio"
)

// Parse reads a model. The model keeps parts of data, which must not change any more.
func Parse(data []byte) (*Model, error) { return parseModel(data, nil) }

func parseModel(data []byte, from *files) (*Model, error) {
	m := new(Model)
	if err := parse(m, data, from); err != nil {
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
	return t, parse(t, data, nil)
}

func parse(m proto, data []byte, from *files) error {
	if err := fileio.CheckLFS(data); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	// Protobuf has no messages of 2 GiB and more, and places are 32 bits of each message.
	if uint64(len(data)) > math.MaxUint32 {
		return fmt.Errorf("%w: it has %d bytes, and weights of that size are in files of their own", ErrFormat, len(data))
	}
	d := &decoder{left: memoryFor(int64(len(data))), from: &source{data, make(map[uint32]oddity), from}, types: make(map[string]*Type)}
	d.decode(m, data, 0)
	if d.err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, d.err)
	}
	remember(m)
	return nil
}

// ReadFile reads a model from a file. It takes little time and memory for a large model, since it
// maps the file: weights are read when somebody looks at them, and those that are in other files,
// which are beside it or below, when [Tensor.Data] asks for them. See [Model.Close].
func ReadFile(name string) (*Model, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	from, err := newFiles(f)
	if err != nil {
		return nil, err
	}
	m, err := parseModel(from.model.Bytes(), from)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), from.close())
	}
	return m, nil
}

// ReadFS reads a model from a file of a file system, such as files that are embedded in a program. External data, in
// files beside it or below, are read, too, and become part of the model.
func ReadFS(fsys fs.FS, name string) (*Model, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	m, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	w, read := newWriter(nil), make(map[string][]byte)
	// Any tensor may have its elements elsewhere, in attributes and in subgraphs as well.
	w.all(m)
	for _, t := range w.tensors {
		if t.Location != LocationExternal {
			continue
		}
		if err := t.readFrom(fsys, path.Dir(name), read); err != nil {
			return nil, fmt.Errorf("%s: %w", name, t.named(err))
		}
	}
	return m, nil
}

// FixDefaults returns the model without inputs that are also initializers: nobody can give those other values, and
// they are constants. It shares all else with m. That takes version 4 of the format; files of before have all weights
// among the inputs.
func (m *Model) FixDefaults() *Model {
	initial := m.Graph.Initial()
	c, g := *m, *m.Graph
	g.Inputs = slices.DeleteFunc(slices.Clone(g.Inputs), func(in *ValueInfo) bool { return initial[in.Name] })
	if c.Graph = &g; len(g.Inputs) < len(m.Graph.Inputs) {
		c.IRVersion = max(m.IRVersion, 4)
	}
	return &c
}

// Close gives back the files of a model that [ReadFile] read. After that nothing of the model may be
// used that shares their memory: its tensors, those that were moved to other models, and the results
// of [Tensor.Data]. A program that reads a few models needn't call it, since what is mapped and not
// looked at takes no memory. Close does nothing to other models, and nothing when it is called again.
func (m *Model) Close() error {
	if f := m.files(); f != nil {
		return f.close()
	}
	return nil
}

// Forget gives memory that holds files of the model back to the system: the part that data is in, or all of it if data
// is nil. It may still be read, and then comes from the file again. A program calls Forget once it has made something
// else of weights. It does nothing to memory that belongs to no mapped file of the model.
func (m *Model) Forget(data []byte) error {
	if f := m.files(); f != nil {
		return f.forget(data)
	}
	return nil
}

// Write writes a model. Where nothing has changed since it was read, the bytes are the same. What
// tensors say of elements in other files is written as it is, see [Model.WriteFile].
func (m *Model) Write(w io.Writer) error { return newWriter(nil).write(w, m) }

// Write writes a tensor as files with the extension .pb hold it.
func (m *Tensor) Write(w io.Writer) error { return newWriter(nil).write(w, m) }

// write writes a message that is in no other.
func (w *writer) write(to io.Writer, m proto) error {
	out := bufio.NewWriterSize(to, 1<<16) // which remembers its first error
	w.out.write = func(b []byte) { _, _ = out.Write(b) }
	// All is planned first, so that a model that can't be written leaves no half of itself.
	p := w.all(m)
	if w.err != nil {
		return w.err
	}
	w.message(m, p)
	return out.Flush()
}

// folderOf returns the folder of a file, such that it means the same after a change of the working
// directory.
func folderOf(name string) string {
	dir := filepath.Dir(name)
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// newFiles maps a model.
func newFiles(f *os.File) (*files, error) {
	model, err := fileio.Map(f)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, model.Close())
	}
	return &files{folder: folderOf(f.Name()), model: model, info: info, data: make(map[string]*dataFile)}, nil
}

// ParseAttribute reads an AttributeProto, of which it keeps parts.
func ParseAttribute(data []byte) (*Attribute, error) {
	a := new(Attribute)
	return a, parse(a, data, nil)
}

// Write writes the AttributeProto.
func (m *Attribute) Write(w io.Writer) error { return newWriter(nil).write(w, m) }

// ParseSparseTensor reads a SparseTensorProto, of which it keeps parts.
func ParseSparseTensor(data []byte) (*SparseTensor, error) {
	t := new(SparseTensor)
	return t, parse(t, data, nil)
}

// Write writes the SparseTensorProto.
func (m *SparseTensor) Write(w io.Writer) error { return newWriter(nil).write(w, m) }
