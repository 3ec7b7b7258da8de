package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	onnxmodel "github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/tensor/array"
)

// A recordFormat is a kind of files of records.
type recordFormat interface {
	suffix() string
	// open opens the records from one on: 0, or the offset that a reader told before it read that one.
	open(ctx context.Context, w *inferWork, m *onnxModel, offset int64) (recordReader, error)
	// join writes the results of shards as one file.
	join(ctx context.Context, w *inferWork, shards []recordShard, to io.Writer) error
}

// A recordReader reads records in their order.
type recordReader interface {
	kind() string // what results depend on beside the records
	offset() int64
	// next returns the next record, and io.EOF after the last one. What is known by then of the record goes to sum.
	next(sum io.Writer) (record, error)
	// writer returns what writes the results of the records.
	writer(to io.Writer) recordWriter
	io.Closer
}

// A record is what a model runs over. It is of any goroutine.
type record interface {
	infer(ctx context.Context, b *onnxmodel.Batcher) result
}

// A result is the record with outputs in place of inputs, as a line or as a row.
type result struct {
	line   []byte
	row    parquet.Row
	failed bool
}

type recordWriter interface {
	write(result) error
	close() error
}

// format returns the format of the records.
func (w *inferWork) format() recordFormat {
	if strings.HasSuffix(strings.ToLower(w.Records), tables{}.suffix()) {
		return tables{}
	}
	return lines{}
}

// results is the file of the results.
func (w *inferWork) results() string { return w.path("records" + w.format().suffix()) }

// part is the file of the results of a shard.
func (w *inferWork) part(id string) string { return w.path(shardsDir, id+w.format().suffix()) }

// noEOF returns an error that is no end.
func noEOF(err error) error {
	if err == io.EOF {
		return fmt.Errorf("it has fewer records than when the job was planned: start the job again: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// lines is the format of JSON lines. Offsets are in bytes.
type lines struct{}

func (lines) suffix() string { return ".jsonl" }

func (lines) open(ctx context.Context, w *inferWork, m *onnxModel, offset int64) (recordReader, error) {
	name := w.Records
	if offset > 0 {
		name += ":" + strconv.FormatInt(offset, 10)
	}
	f, err := newPatientOpener(ctx, false).OpenInput(name)
	if err != nil {
		return nil, err
	}
	return &lineReader{m, bufio.NewReader(f), offset, f}, nil
}

func (lines) join(ctx context.Context, w *inferWork, shards []recordShard, to io.Writer) error {
	for _, s := range shards {
		part, err := w.store().open(ctx, w.part(s.ID))
		if err != nil {
			return err
		}
		_, err = io.Copy(to, part)
		part.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// A lineReader reads lines of JSON.
type lineReader struct {
	m    *onnxModel
	text *bufio.Reader
	at   int64
	io.Closer
}

func (r *lineReader) kind() string  { return "" }
func (r *lineReader) offset() int64 { return r.at }

func (r *lineReader) next(sum io.Writer) (record, error) {
	for {
		line, err := readRecord(r.text)
		r.at += int64(len(line))
		if len(bytes.TrimSpace(line)) > 0 && (err == nil || err == io.EOF) {
			sum.Write(line)
			return lineRecord{r.m, line}, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (r *lineReader) writer(to io.Writer) recordWriter { return lineWriter{bufio.NewWriter(to)} }

type lineWriter struct{ to *bufio.Writer }

func (w lineWriter) write(r result) error {
	_, err := w.to.Write(append(r.line, '\n'))
	return err
}

func (w lineWriter) close() error { return w.to.Flush() }

// maxRecord is the largest size of a record in bytes.
const maxRecord = 256 << 20

// readRecord reads a line with its end.
func readRecord(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); err != bufio.ErrBufferFull {
			return line, err
		}
		if len(line) > maxRecord {
			return nil, fmt.Errorf("it is longer than %d bytes: %w", maxRecord, fileio.ErrLimit)
		}
	}
}

// A lineRecord is a line of JSON.
type lineRecord struct {
	m    *onnxModel
	line []byte
}

func (r lineRecord) infer(ctx context.Context, b *onnxmodel.Batcher) result {
	record := make(map[string]json.RawMessage)
	fail := func(err error) result {
		// A reason is text, which has an encoding.
		record["error"], _ = json.Marshal(reason(err))
		for _, v := range r.m.Inputs() {
			delete(record, v.Name)
		}
		text, _ := json.Marshal(record)
		return result{line: text, failed: true}
	}
	if err := json.Unmarshal(r.line, &record); err != nil {
		record = make(map[string]json.RawMessage)
		return fail(err)
	}
	inputs := make(onnxmodel.Inputs)
	rows := false
	for _, v := range r.m.Inputs() {
		text, given := record[v.Name]
		if !given {
			continue // the model says what is missing
		}
		x, row, err := readTensor(text, v)
		if err != nil {
			return fail(fmt.Errorf("input %q: %w", v.Name, err))
		}
		inputs[v.Name], rows = x, rows || row
	}
	outputs, err := b.Run(ctx, inputs)
	if err != nil {
		return fail(err)
	}
	for name := range inputs {
		delete(record, name)
	}
	for name, a := range outputs {
		shape := a.Shape()
		if rows && len(shape) > 0 && shape[0] == 1 {
			shape = shape[1:]
		}
		if record[name], err = writeTensor(a, shape); err != nil {
			return fail(fmt.Errorf("output %q: %w", name, err))
		}
	}
	text, err := json.Marshal(record)
	if err != nil {
		return fail(err)
	}
	return result{line: text}
}

// readTensor reads nested lists of numbers. row says that they lack the first axis of the input.
func readTensor(text []byte, v onnxmodel.Value) (x any, row bool, err error) {
	shape, flat, err := flattened(text)
	if err != nil {
		return nil, false, err
	}
	if len(v.Dims) == len(shape)+1 && v.Dims[0].Size < 0 {
		shape, row = slices.Insert(shape, 0, 1), true
	}
	of, ok := codecs[v.Type]
	if !ok {
		return nil, false, fmt.Errorf("elements of type %s have no form in a record", v.Type)
	}
	x, err = of.read(flat, shape)
	return x, row, err
}

// flattened returns the sizes of nested lists, and their elements as one list. Lists beside each other
// are of one size.
func flattened(text []byte) (shape []int, flat []byte, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	flat = append(flat, '[')
	var counts []int // of elements so far, by depth
	for {
		t, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		switch t := t.(type) {
		case json.Delim:
			if t == '{' || t == '}' {
				return nil, nil, fmt.Errorf("a list of numbers was expected, not an object")
			}
			if t == '[' {
				counts = append(counts, 0)
				if len(counts) > len(shape) {
					if len(flat) > 1 || len(shape) == array.MaxDims {
						return nil, nil, fmt.Errorf("a list stands beside a number, or deeper than %d lists", array.MaxDims)
					}
					shape = append(shape, -1)
				}
				continue
			}
			depth := len(counts) - 1
			if n := counts[depth]; shape[depth] < 0 {
				shape[depth] = n
			} else if n != shape[depth] {
				return nil, nil, fmt.Errorf("lists of %d and of %d elements stand beside each other", shape[depth], n)
			}
			counts = counts[:depth]
		case nil:
			return nil, nil, fmt.Errorf("null is no number")
		default:
			if len(counts) != len(shape) {
				return nil, nil, fmt.Errorf("a number stands beside a list")
			}
			if len(flat) > 1 {
				flat = append(flat, ',')
			}
			element, err := json.Marshal(t)
			if err != nil {
				return nil, nil, err
			}
			flat = append(flat, element...)
		}
		if len(counts) == 0 {
			return shape, append(flat, ']'), nil
		}
		counts[len(counts)-1]++
	}
}

// writeTensor returns the elements of an array as nested lists.
func writeTensor(a *array.Array, shape []int) (json.RawMessage, error) {
	of, ok := codecs[a.DType().String()]
	if !ok {
		return nil, fmt.Errorf("elements of type %s have no form in a record", a.DType())
	}
	return of.append(nil, a, shape)
}

// A codec reads and writes the elements of records.
type codec struct {
	read   func(flat []byte, shape []int) (*array.Array, error)
	append func(to []byte, a *array.Array, shape []int) ([]byte, error)
}

// codecs are by the names of types.
var codecs = map[string]codec{
	"bool": codecOf[bool](), "float32": codecOf[float32](), "float64": codecOf[float64](),
	"int8": codecOf[int8](), "uint8": codecOf[uint8](), "int16": codecOf[int16](), "int32": codecOf[int32](), "int64": codecOf[int64](),
	"uint16": codecOf[uint16](), "uint32": codecOf[uint32](), "uint64": codecOf[uint64](),
}

// octets are read from numbers, where encoding/json takes a []uint8 for text.
type octets []uint8

// UnmarshalJSON reads an array of numbers.
func (o *octets) UnmarshalJSON(text []byte) error {
	var numbers []uint16
	if err := json.Unmarshal(text, &numbers); err != nil {
		return err
	}
	for _, n := range numbers {
		if n > math.MaxUint8 {
			return fmt.Errorf("%d is no uint8", n)
		}
		*o = append(*o, uint8(n))
	}
	return nil
}

func codecOf[T array.Element]() codec {
	return codec{
		func(flat []byte, shape []int) (*array.Array, error) {
			var elements []T
			to := any(&elements)
			if b, ok := to.(*[]uint8); ok {
				to = (*octets)(b)
			}
			if err := json.Unmarshal(flat, to); err != nil {
				return nil, err
			}
			return array.Of(elements, shape...), nil // flattened has counted them
		},
		func(to []byte, a *array.Array, shape []int) ([]byte, error) {
			list, err := onnxmodel.Slice[T](a)
			if err != nil {
				return nil, err
			}
			return appendNested(to, list, shape)
		},
	}
}

// appendNested appends a list of lists of elements.
func appendNested[T array.Element](to []byte, list []T, shape []int) ([]byte, error) {
	if len(shape) == 0 {
		text, err := json.Marshal(list[0])
		if _, ok := err.(*json.UnsupportedValueError); ok { // NaN or infinite
			text, err = []byte("null"), nil
		}
		return append(to, text...), err
	}
	to = append(to, '[')
	part := 1
	for _, n := range shape[1:] {
		part *= n
	}
	for i := range shape[0] {
		if i > 0 {
			to = append(to, ',')
		}
		var err error
		if to, err = appendNested(to, list[i*part:][:part], shape[1:]); err != nil {
			return nil, err
		}
	}
	return append(to, ']'), nil
}
