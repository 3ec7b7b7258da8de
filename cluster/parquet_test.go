package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/nnopt/nnopt/tensor/array"
)

// A sentence is a record for the encoder, with columns that stay.
type sentence struct {
	ID    int64              `parquet:"id"`
	Text  *string            `parquet:"text,optional"`
	Words []string           `parquet:"words,list"`
	Spans map[string][]int32 `parquet:"spans"`
	IDs   []int32            `parquet:"input_ids,list"`
	Mask  []*uint8           `parquet:"attention_mask,list"`
}

type embedded struct {
	ID        int64              `parquet:"id"`
	Text      *string            `parquet:"text,optional"`
	Words     []string           `parquet:"words,list"`
	Spans     map[string][]int32 `parquet:"spans"`
	Embedding []float32          `parquet:"embedding,optional,list"`
	Error     *string            `parquet:"error,optional"`
}

func writeRows[T any](t *testing.T, name string, rows []T, options ...parquet.WriterOption) {
	t.Helper()
	if err := parquet.WriteFile(name, rows, options...); err != nil {
		t.Fatal(err)
	}
}

func rowsOf[T any](t *testing.T, dir string) []T {
	t.Helper()
	rows, err := parquet.ReadFile[T](filepath.Join(dir, "records.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestInferTables: rows keep their order and their other columns, those that fail say why, and what is complete is
// not computed again.
func TestInferTables(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.parquet"), filepath.Join(dir, "out")
	text, one := "a sentence", uint8(1)
	words := []string{"x", "", "z"}
	spans := map[string][]int32{"a": {1, 2}, "b": nil}
	ones := []*uint8{&one, &one, &one}
	rows := []sentence{
		{1, &text, words, spans, []int32{1, 4, 2}, ones},
		{2, nil, nil, nil, []int32{1, 4}, ones},
		{3, &text, words, nil, []int32{1, 4, 2}, []*uint8{&one, nil, &one}},
		{4, nil, nil, spans, nil, ones},
		{5, nil, words, spans, []int32{1, 4, 2}, ones},
	}
	writeRows(t, in, rows)
	row := []float32{0.70710677, 0.70710677, 0}
	want := func(i int, embedding []float32, why string) embedded {
		e := embedded{rows[i].ID, rows[i].Text, rows[i].Words, rows[i].Spans, embedding, &why}
		if why == "" {
			e.Error = nil
		}
		return e
	}
	all := []embedded{
		want(0, row, ""),
		want(1, nil, `model: input "attention_mask": wanted int64[batch,tokens], given int64[1,3]: size 1 should be 2, since tokens is in input_ids`),
		want(2, nil, `input "attention_mask": null is no number`),
		want(3, nil, `model: input "attention_mask": wanted int64[batch,tokens], given int64[1,3]: size 1 should be 0, since tokens is in input_ids`),
		want(4, row, ""),
	}
	j := Inference{Model: encoder, Records: in, Out: out, RecordsPerShard: 2}
	check := func(got, want []embedded) {
		t.Helper()
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || !reflect.DeepEqual(asJSON(t, got[i]), asJSON(t, want[i])) {
				t.Fatalf("row %d of %d is %s, want of %d %s", i, len(got), asJSON(t, got[min(i, len(got)-1)]), len(want), asJSON(t, want[min(i, len(want)-1)]))
			}
		}
	}
	for again := range 2 {
		sum, err := Infer(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Records != 5 || sum.Failed != 3 || sum.Shards != 3 || sum.SkippedShards != 3*again {
			t.Errorf("%+v", sum)
		}
		check(rowsOf[embedded](t, out), all)
	}

	// More records, in other groups: only the shard that is new is computed.
	writeRows(t, in, append(rows[:4:4], rows[4], rows[0]), parquet.MaxRowsPerRowGroup(3))
	if sum, err := Infer(t.Context(), j); err != nil || sum.Records != 6 || sum.SkippedShards != 2 {
		t.Errorf("%+v, %v", sum, err)
	}
	check(rowsOf[embedded](t, out), append(all, all[0]))

	// None at all: the columns are there.
	writeRows(t, in, rows[:0])
	j.Out = filepath.Join(dir, "none")
	if sum, err := Infer(t.Context(), j); err != nil || sum.Records != 0 {
		t.Errorf("%+v, %v", sum, err)
	}
	check(rowsOf[embedded](t, j.Out), nil)

	// Columns that are no inputs.
	for name, write := range map[string]func(name string){
		"no column": func(name string) { writeRows(t, name, []struct{ Other int64 }{{1}}) },
		"strings": func(name string) {
			writeRows(t, name, []map[string]string{}, parquet.NewSchema("x", parquet.Group{"input_ids": parquet.String(), "attention_mask": parquet.String()}))
		},
		"fields": func(name string) {
			writeRows(t, name, []struct {
				IDs struct{ A, B int64 } `parquet:"input_ids"`
			}{})
		},
		"text": func(name string) {
			if err := os.WriteFile(name, []byte("no table"), 0o666); err != nil {
				t.Fatal(err)
			}
		},
	} {
		j.Records, j.Out = filepath.Join(dir, name+".parquet"), filepath.Join(dir, name)
		write(j.Records)
		if _, err := Infer(t.Context(), j); !errors.Is(err, ErrJob) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// asJSON returns a row as JSON, where nil and empty slices are alike.
func asJSON(t *testing.T, e embedded) string {
	t.Helper()
	if len(e.Words) == 0 {
		e.Words = nil
	}
	if len(e.Spans) == 0 {
		e.Spans = nil
	}
	for k, v := range e.Spans {
		if len(v) == 0 {
			e.Spans[k] = nil
		}
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestInferTableOfMany: a table has the bits that lines of JSON have, in any batches.
func TestInferTableOfMany(t *testing.T) {
	dir := t.TempDir()
	type record struct {
		IDs  [][]int64 `parquet:"input_ids,list" json:"input_ids"`
		Mask [][]int64 `parquet:"attention_mask,list" json:"attention_mask"`
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var text bytes.Buffer
	var rows []record
	for range 300 {
		r := record{}
		n := 1 + rng.IntN(3)
		for range 1 + rng.IntN(3) {
			ids, mask := make([]int64, n), make([]int64, n)
			for k := range n {
				ids[k], mask[k] = rng.Int64N(8), 1
			}
			r.IDs, r.Mask = append(r.IDs, ids), append(r.Mask, mask)
		}
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
		rows = append(rows, r)
	}
	type result struct {
		Embedding [][]float32 `parquet:"embedding,optional,list" json:"embedding"`
		Error     *string     `parquet:"error,optional" json:"error"`
	}
	j := Inference{Model: encoder, Records: filepath.Join(dir, "in.jsonl"), Out: filepath.Join(dir, "lines"), RecordsPerShard: 70}
	if err := os.WriteFile(j.Records, text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Infer(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	lines, err := os.Open(filepath.Join(j.Out, "records.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close()
	var want []result
	for d := json.NewDecoder(lines); d.More(); {
		var r result
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Embedding == nil || r.Error != nil {
			t.Fatalf("%+v", r)
		}
		want = append(want, r)
	}
	j.Records = filepath.Join(dir, "in.parquet")
	writeRows(t, j.Records, rows, parquet.MaxRowsPerRowGroup(100))
	for _, batch := range []int{1, 7, 0} {
		j.Rows, j.Out = batch, filepath.Join(dir, fmt.Sprint("out", batch))
		if _, err := Infer(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		if got := rowsOf[result](t, j.Out); !reflect.DeepEqual(got, want) {
			t.Fatalf("%d rows at a time: %v, want %v", batch, got, want)
		}
	}
}

// TestColumns: tensors of all types and sizes come back from the values of a column.
func TestColumns(t *testing.T) {
	for name, codec := range columnCodecs {
		for _, shape := range [][]int{{}, {3}, {0}, {2, 3}, {2, 0}, {0, 2}, {2, 1, 3}, {1, 2, 0, 3}, {1, 1, 1}} {
			n := 1
			for _, size := range shape {
				n *= size
			}
			flat := []byte("[")
			for i := range n {
				if i > 0 {
					flat = append(flat, ',')
				}
				if name == "bool" {
					flat = fmt.Append(flat, i%3 == 0)
				} else {
					flat = fmt.Append(flat, i*20)
				}
			}
			a, err := codecs[name].read(append(flat, ']'), shape)
			if err != nil {
				t.Fatal(err)
			}
			values, err := outputColumn{codec: codec, dims: len(shape)}.values(a, 5)
			if err != nil {
				t.Fatal(err)
			}
			c := listColumn{codec: codec, most: 1 + len(shape), unsigned: name[0] == 'u'}
			for k := range shape {
				c.lists = append(c.lists, 2+k)
			}
			x, err := c.read(values)
			if err != nil {
				t.Errorf("%s%d: %v of %+v", name, shape, err, values)
				continue
			}
			b := x.(*array.Array)
			given, _ := writeTensor(a, shape)
			got, _ := writeTensor(b, b.Shape())
			want := slices.Clone(shape)
			if z := slices.Index(shape, 0); z >= 0 {
				clear(want[z:]) // sizes within lists that are empty are unknown
			}
			if !slices.Equal(b.Shape(), want) || n > 0 && !bytes.Equal(given, got) {
				t.Errorf("%s%d became %v", name, shape, b)
			}
		}
	}
	for _, c := range []struct {
		v        parquet.Value
		unsigned bool
		name     string
		want     any // nil for an error
	}{
		{parquet.Int32Value(-1), false, "uint8", nil},
		{parquet.Int32Value(-1), true, "uint32", uint32(math.MaxUint32)},
		{parquet.Int32Value(-1), true, "int64", int64(math.MaxUint32)},
		{parquet.Int64Value(-1), true, "int64", nil},
		{parquet.Int64Value(-1), true, "uint64", uint64(math.MaxUint64)},
		{parquet.Int64Value(-1), false, "uint64", nil},
		{parquet.Int64Value(-1), false, "int8", int8(-1)},
		{parquet.Int64Value(200), false, "int8", nil},
		{parquet.Int64Value(-3), false, "float32", float32(-3)},
		{parquet.Int64Value(-1), true, "float64", float64(math.MaxUint64)},
		{parquet.DoubleValue(0.1), false, "float32", float32(0.1)},
		{parquet.FloatValue(0.5), false, "float64", 0.5},
	} {
		x, err := columnCodecs[c.name].read([]parquet.Value{c.v}, c.unsigned, nil)
		var got []byte
		if err == nil {
			got, err = writeTensor(x, nil)
		}
		want, _ := json.Marshal(c.want)
		if (err != nil) != (c.want == nil) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%v as %s: %s, %v, want %s", c.v, c.name, got, err, want)
		}
	}
}

// TestDamagedTable: a file with wrong bytes is refused, or rows of it fail, or it has other rows.
func TestDamagedTable(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "in.parquet")
	one := uint8(1)
	rows := make([]sentence, 20)
	for i := range rows {
		rows[i] = sentence{ID: int64(i), Words: []string{"a"}, IDs: []int32{1, int32(i % 8)}, Mask: []*uint8{&one, &one}}
	}
	writeRows(t, name, rows)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	w := &inferWork{Records: name, work: work{Model: absolute(encoder)}}
	m, release, err := acquireONNX(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	rng := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for i := range 500 {
		text := slices.Clone(whole)
		if i%10 == 0 {
			text = text[:rng.IntN(len(text))]
		} else {
			for range 1 + rng.IntN(3) {
				text[rng.IntN(len(text))] = byte(rng.Uint32())
			}
		}
		if err := os.WriteFile(name, text, 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := tables{}.open(t.Context(), w, m, 0)
		if err != nil {
			refused++
			continue
		}
		for range 1000 {
			if _, err = r.next(new(bytes.Buffer)); err != nil {
				break
			}
		}
		if err == nil {
			t.Errorf("it has more than 1000 rows")
		}
		r.Close()
	}
	if refused < 50 {
		t.Errorf("%d of 500 files were refused", refused)
	}
}

// TestInferTableObjects: tables may be objects, which are read in parts and have no folder.
func TestInferTableObjects(t *testing.T) {
	name := filepath.Join(t.TempDir(), "in.parquet")
	one := uint8(1)
	rows := make([]sentence, 50)
	for i := range rows {
		rows[i] = sentence{ID: int64(i), IDs: []int32{1, 4, 2}, Mask: []*uint8{&one, &one, &one}}
	}
	writeRows(t, name, rows)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	ranged.Clear()
	ranged.Put("ranged://tables/in.parquet", data)
	ranged.Faults = 1 // each read and write once, before it is repeated
	defer ranged.Clear()
	j := Inference{Model: encoder, Records: "ranged://tables/in.parquet", Out: "ranged://tables/out", RecordsPerShard: 20}
	if sum, err := Infer(t.Context(), j); err != nil || sum.Records != 50 || sum.Failed != 0 || sum.Shards != 3 {
		t.Fatalf("%+v, %v", sum, err)
	}
	text := ranged.Get("ranged://tables/out/records.parquet")
	got, err := parquet.Read[embedded](bytes.NewReader(text), int64(len(text)))
	if err != nil || len(got) != 50 {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	for i, e := range got {
		if e.ID != int64(i) || !slices.Equal(e.Embedding, []float32{0.70710677, 0.70710677, 0}) || e.Error != nil {
			t.Fatalf("row %d is %+v", i, e)
		}
	}
}
