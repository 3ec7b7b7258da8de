package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/parquet-go/parquet-go"

	onnxmodel "github.com/nnopt/nnopt/exec/model"
)

// tables is the format of Parquet files. Offsets are in rows.
type tables struct{}

func (tables) suffix() string { return ".parquet" }

// readBuffer is the size of the pieces in which a column is read, each a request where files are objects.
const readBuffer = 256 << 10

func (tables) open(ctx context.Context, w *inferWork, m *onnxModel, offset int64) (_ recordReader, err error) {
	in, err := newPatientOpener(ctx, false).OpenInput(w.Records)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			in.Close()
			err = fmt.Errorf("%w: %s: %w", ErrJob, w.Records, err)
		}
	}()
	defer damaged(&err)
	f, ok := in.(io.ReadSeeker)
	if !ok {
		return nil, errors.New("a Parquet file is read in any order, which a pipe does not allow")
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(readerAt{f}, size, parquet.ReadBufferSize(readBuffer), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	r := &tableReader{in: in, rows: parquet.NewGenericReader[any](file), at: offset, types: file.Schema().String()}
	if err := r.plan(file.Schema(), m); err != nil {
		return nil, err
	}
	return r, r.rows.SeekToRow(offset)
}

func (r *tableReader) Close() error { return errors.Join(r.rows.Close(), r.in.Close()) }

// damaged makes an error of a panic. The library checks what a file says of itself, but not everything.
func damaged(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the file is damaged: %v", p)
	}
}

// readerAt reads anywhere, for one goroutine.
type readerAt struct{ io.ReadSeeker }

func (r readerAt) ReadAt(p []byte, at int64) (int, error) {
	if _, err := r.Seek(at, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(r, p)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

func (tables) join(ctx context.Context, w *inferWork, shards []recordShard, to io.Writer) (err error) {
	defer damaged(&err)
	var out *parquet.GenericWriter[any]
	for _, s := range shards {
		if out, err = joinPart(ctx, w, s, to, out); err != nil {
			return fmt.Errorf("%s: %w", w.part(s.ID), err)
		}
	}
	return out.Close() // there is a shard
}

// joinPart appends the rows of a shard to out, which is made for the first one.
func joinPart(ctx context.Context, w *inferWork, s recordShard, to io.Writer, out *parquet.GenericWriter[any]) (*parquet.GenericWriter[any], error) {
	part, err := w.store().open(ctx, w.part(s.ID))
	if err != nil {
		return out, err
	}
	defer part.Close()
	size, err := w.store().size(ctx, w.part(s.ID))
	if err != nil {
		return out, err
	}
	file, err := parquet.OpenFile(readerAt{part.(io.ReadSeeker)}, size) // both stores open files that seek
	if err != nil {
		return out, err
	}
	if out == nil {
		out = newTable(to, file.Schema())
	}
	for _, rows := range file.RowGroups() {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		if _, err := out.WriteRowGroup(rows); err != nil {
			return out, err
		}
	}
	return out, nil
}

// newTable returns a writer of rows, compressed as most writers of Parquet do.
func newTable(to io.Writer, s *parquet.Schema) *parquet.GenericWriter[any] {
	return parquet.NewGenericWriter[any](to, s, parquet.Compression(&parquet.Snappy))
}

// A tableReader reads the rows of a Parquet file.
type tableReader struct {
	rows *parquet.GenericReader[any]
	at   int64
	row  [1]parquet.Row
	in   io.Closer

	types   string              // the columns
	inputs  map[int]*listColumn // by the number of the column
	kept    map[int]int         // from the numbers of other columns to those in the results
	results *parquet.Schema
	numbers map[string]int // of the columns of results that are not kept
	outputs []outputColumn
	asRows  bool // an input lacks the first axis, and outputs with it
}

// plan finds the columns of inputs, and makes those of results.
func (r *tableReader) plan(s *parquet.Schema, m *onnxModel) error {
	r.inputs, r.kept = make(map[int]*listColumn), make(map[int]int)
	columns := make(parquet.Group)
	for _, f := range s.Fields() {
		columns[f.Name()] = f
	}
	for _, v := range m.Inputs() {
		if columns[v.Name] == nil && v.Optional {
			continue
		}
		at, c, err := inputColumn(s, v)
		if err != nil {
			return fmt.Errorf("input %q: %w", v.Name, err)
		}
		r.inputs[at], r.asRows = c, r.asRows || c.row
		delete(columns, v.Name)
	}
	kept := maps.Clone(columns)
	for _, v := range m.Outputs() {
		codec, ok := columnCodecs[v.Type]
		if !ok || v.Sequence || v.Dims == nil {
			return fmt.Errorf("output %q: %v has no form in a column", v.Name, v)
		}
		o := outputColumn{name: v.Name, codec: codec, dims: len(v.Dims)}
		if o.row = r.asRows && o.dims > 0 && (v.Dims[0].Size < 0 || v.Dims[0].Size == 1); o.row {
			o.dims--
		}
		node := codec.leaf
		for range o.dims {
			node = parquet.List(node)
		}
		columns[v.Name] = parquet.Optional(node)
		delete(kept, v.Name)
		r.outputs = append(r.outputs, o)
	}
	columns[errorColumn] = parquet.Optional(parquet.String())
	delete(kept, errorColumn)
	r.results = parquet.NewSchema("record", columns)
	r.numbers = make(map[string]int)
	for i, path := range r.results.Columns() {
		r.numbers[path[0]] = i // of a column that is one leaf
	}
	for i, path := range s.Columns() {
		if kept[path[0]] != nil {
			to, _ := r.results.Lookup(path...)
			r.kept[i] = to.ColumnIndex
		}
	}
	return nil
}

// errorColumn has the reasons of records that fail.
const errorColumn = "error"

func (r *tableReader) kind() string  { return r.types }
func (r *tableReader) offset() int64 { return r.at }

func (r *tableReader) next(sum io.Writer) (_ record, err error) {
	defer damaged(&err)
	n, err := r.rows.ReadRows(r.row[:])
	if n == 0 {
		if err == nil {
			err = io.ErrNoProgress
		}
		return nil, err
	}
	r.at++
	rec := &tableRecord{r: r, inputs: make(onnxmodel.Inputs)}
	var text []byte
	for at, values := range r.row[0].Range {
		for _, v := range values {
			text = binary.AppendVarint(append(text, byte(v.RepetitionLevel()), byte(v.DefinitionLevel())), int64(at))
			text = v.AppendBytes(binary.AppendUvarint(text, uint64(len(v.Bytes()))))
			if to, ok := r.kept[at]; ok {
				rec.kept = append(rec.kept, v.Clone().Level(v.RepetitionLevel(), v.DefinitionLevel(), to))
			}
		}
		// Now, as numbers take a sixth of the memory of values, and many records wait for their batch.
		if c := r.inputs[at]; c != nil && rec.err == nil {
			x, err := c.read(values)
			if err != nil {
				rec.err = fmt.Errorf("input %q: %w", c.name, err)
			}
			rec.inputs[c.name] = x
		}
	}
	sum.Write(text)
	return rec, nil
}

// A tableRecord is a row. It keeps no memory of the reader.
type tableRecord struct {
	r      *tableReader
	inputs onnxmodel.Inputs
	kept   parquet.Row // with the numbers of columns in the results
	err    error
}

func (rec *tableRecord) infer(ctx context.Context, b *onnxmodel.Batcher) result {
	r := rec.r
	columns := make([][]parquet.Value, len(r.results.Columns()))
	for _, v := range rec.kept {
		columns[v.Column()] = append(columns[v.Column()], v)
	}
	var outputs onnxmodel.Outputs
	err := rec.err
	if err == nil {
		outputs, err = b.Run(ctx, rec.inputs)
	}
	for _, o := range r.outputs {
		if err != nil {
			break
		}
		at := r.numbers[o.name]
		if columns[at], err = o.values(outputs[o.name], at); err != nil {
			err = fmt.Errorf("output %q: %w", o.name, err)
		}
	}
	at, why := r.numbers[errorColumn], parquet.NullValue().Level(0, 0, 0)
	if err != nil {
		for _, o := range r.outputs {
			columns[r.numbers[o.name]] = []parquet.Value{parquet.NullValue().Level(0, 0, r.numbers[o.name])}
		}
		why = parquet.ByteArrayValue([]byte(reason(err))).Level(0, 1, at)
	}
	why.SetColumnIndex(at)
	columns[at] = []parquet.Value{why}
	return result{row: parquet.MakeRow(columns...), failed: err != nil}
}

func (r *tableReader) writer(to io.Writer) recordWriter {
	return &tableWriter{to: newTable(to, r.results)}
}

// A tableWriter writes rows.
type tableWriter struct {
	to   *parquet.GenericWriter[any]
	held int // values that are not written
}

// mostHeld bounds the memory of a writer, which writes many rows at a time.
const mostHeld = 16 << 20

func (w *tableWriter) write(r result) (err error) {
	defer damaged(&err)
	if _, err := w.to.WriteRows([]parquet.Row{r.row}); err != nil {
		return err
	}
	if w.held += len(r.row); w.held >= mostHeld {
		w.held = 0
		return w.to.Flush()
	}
	return nil
}

func (w *tableWriter) close() error { return w.to.Close() }
