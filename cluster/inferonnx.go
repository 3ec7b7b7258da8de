package cluster

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"

	onnxmodel "github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/tensor/array"
)

// An onnxModel is a model that is ready to run. All users in a process share it.
type onnxModel struct {
	*onnxmodel.Model
	sum   string // SHA-256 of the file, in hexadecimal
	users int
}

var onnxModels = struct {
	sync.Mutex
	open map[string]*onnxModel
}{open: make(map[string]*onnxModel)}

// acquireONNX returns the model of an inference.
func acquireONNX(ctx context.Context, w *inferWork) (m *onnxModel, release func(), err error) {
	// Whoever comes while it is read waits: several shards begin at a time.
	onnxModels.Lock()
	defer onnxModels.Unlock()
	key := w.Model + "\x00" + w.Query + "\x00" + w.ModelSum
	if m = onnxModels.open[key]; m == nil {
		if m, err = readONNX(ctx, w); err != nil {
			return nil, nil, err
		}
		onnxModels.open[key] = m
	}
	m.users++
	return m, sync.OnceFunc(func() {
		onnxModels.Lock()
		defer onnxModels.Unlock()
		if m.users--; m.users == 0 {
			delete(onnxModels.open, key)
			m.Close()
		}
	}), nil
}

func readONNX(ctx context.Context, w *inferWork) (*onnxModel, error) {
	f, err := newPatientOpener(ctx, false).OpenInput(w.Model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	// Records are computed at a time, each by one thread, since a batch may wait for its rows.
	m, err := onnxmodel.Options{Query: w.Query, Threads: 1}.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrJob, w.Model, err)
	}
	sum := sha256.Sum256(data)
	return &onnxModel{Model: m, sum: hex.EncodeToString(sum[:])}, nil
}

// inferShard computes a shard and writes the results in the order of its records.
func (m *onnxModel) inferShard(ctx context.Context, w *inferWork, s recordShard, to io.Writer) (failed int64, err error) {
	workers := runtime.GOMAXPROCS(0)
	b, err := m.NewBatcher(onnxmodel.BatcherOptions{MaxRows: w.Rows, Workers: workers})
	if err != nil {
		return 0, err
	}
	defer b.Close()
	f, err := newPatientOpener(ctx, false).OpenInput(w.Records + ":" + strconv.FormatInt(s.Offset, 10))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	type result struct {
		line   []byte
		failed bool
	}
	ctx, cancel := context.WithCancel(ctx)
	var computing sync.WaitGroup
	defer computing.Wait()
	defer cancel()
	out := bufio.NewWriter(to)
	// Results wait for those before them, and no more records are read than give two batches to each worker.
	waiting := make(chan chan result, 2*workers*cmp.Or(w.Rows, 32))
	write := func() error {
		r := <-<-waiting
		if r.failed {
			failed++
		}
		_, err := out.Write(append(r.line, '\n'))
		return err
	}
	lines := bufio.NewReader(io.LimitReader(f, s.Bytes))
	for end := false; !end; {
		line, err := readRecord(lines)
		if end = err == io.EOF; err != nil && !end {
			return failed, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if len(waiting) == cap(waiting) {
			if err := write(); err != nil {
				return failed, err
			}
		}
		r := make(chan result, 1)
		waiting <- r
		computing.Go(func() {
			text, err := m.infer(ctx, b, line)
			r <- result{text, err != nil}
		})
	}
	for len(waiting) > 0 {
		if err := write(); err != nil {
			return failed, err
		}
	}
	if ctx.Err() != nil {
		return failed, context.Cause(ctx)
	}
	return failed, out.Flush()
}

// infer computes a record. The line says what failed if there is an error.
func (m *onnxModel) infer(ctx context.Context, b *onnxmodel.Batcher, line []byte) (text []byte, err error) {
	record := make(map[string]json.RawMessage)
	fail := func(err error) ([]byte, error) {
		// A reason is text, which has an encoding.
		record["error"], _ = json.Marshal(reason(err))
		for _, v := range m.Inputs() {
			delete(record, v.Name)
		}
		text, _ := json.Marshal(record)
		return text, err
	}
	if err := json.Unmarshal(line, &record); err != nil {
		record = make(map[string]json.RawMessage)
		return fail(err)
	}
	inputs := make(onnxmodel.Inputs)
	rows := false
	for _, v := range m.Inputs() {
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
	if text, err = json.Marshal(record); err != nil {
		return fail(err)
	}
	return text, nil
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
