package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// encoder is a model of two inputs int64[batch,tokens], and an output float32[batch,3].
const encoder = "../exec/model/testdata/encoder.onnx"

// TestInfer: records keep their order and their other fields, those that fail say why, and what is complete is not
// computed again.
func TestInfer(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out")
	records := []string{
		`{"id":1,"input_ids":[1,4,2],"attention_mask":[1,1,1]}`,
		`{"id":2,"input_ids":[[3,7,0],[1,4,2]],"attention_mask":[[1,1,0],[1,1,1]]}`,
		`{"id":3,"input_ids":[1,4]}`, ``,
		`{"id":4,"input_ids":[[1],[4,2]],"attention_mask":[1]}`,
		`{"id":5,"input_ids":"x","attention_mask":[1]}`,
		`{"id":6`,
		`{"id":7,"input_ids":[1,4,2],"attention_mask":[1,1,1]}`,
	}
	want := []string{
		`{"embedding":[0.70710677,0.70710677,0],"id":1}`,
		`{"embedding":[[0.40824828,0.40824828,0.81649655],[0.70710677,0.70710677,0]],"id":2}`,
		`{"error":"model: input \"attention_mask\": wanted int64[batch,tokens], given nothing","id":3}`,
		`{"error":"input \"input_ids\": lists of 1 and of 2 elements stand beside each other","id":4}`,
		`{"error":"input \"input_ids\": json: cannot unmarshal string into Go value of type int64","id":5}`,
		`{"error":"unexpected end of JSON input"}`,
		`{"embedding":[0.70710677,0.70710677,0],"id":7}`,
	}
	if err := os.WriteFile(in, []byte(strings.Join(records, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	j := Inference{Model: encoder, Records: in, Out: out, RecordsPerShard: 2}
	for again := range 2 {
		sum, err := Infer(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Records != 7 || sum.Failed != 4 || sum.Shards != 4 || sum.SkippedShards != 4*again {
			t.Errorf("%+v", sum)
		}
		text, err := os.ReadFile(filepath.Join(out, "records.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("line %d of\n%s\nis not %s", i, text, want[min(i, len(want)-1)])
			}
		}
	}

	// More records: only shards that are new are computed.
	if err := os.WriteFile(in, []byte(strings.Join(append(records, records[0]), "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	if sum, err := Infer(t.Context(), j); err != nil || sum.Records != 8 || sum.SkippedShards != 3 {
		t.Errorf("%+v, %v", sum, err)
	}
	j.Query = "none"
	if _, err := Infer(t.Context(), j); !errors.Is(err, ErrJob) {
		t.Errorf("another query in one directory: %v", err)
	}
}

// TestInferMany: batches change no row.
func TestInferMany(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.jsonl")
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, `{"id":%d,"input_ids":[%d,%d],"attention_mask":[1,1]}`+"\n", i, i%8, (i/8)%8)
	}
	if err := os.WriteFile(in, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	var first string
	for _, rows := range []int{1, 7, 0} {
		out := filepath.Join(dir, fmt.Sprint("out", rows))
		if _, err := Infer(t.Context(), Inference{Model: encoder, Records: in, Out: out, Rows: rows, RecordsPerShard: 150}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(out, "records.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(got)
		}
		if string(got) != first || strings.Count(first, "embedding") != 500 {
			t.Fatalf("%d rows at a time:\n%s\nand one\n%s", rows, got, first)
		}
	}
}

// TestRecordTensors: elements of every type come back, and what is not finite is null.
func TestRecordTensors(t *testing.T) {
	for name, text := range map[string]string{
		"bool": "[[true,false]]", "uint8": "[0,255]", "int64": "[9007199254740993]", "uint64": "18446744073709551615",
		"float32": "[[[0.1],[-2]]]", "float64": "[]", "int8": "[[],[]]",
	} {
		shape, flat, err := flattened([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if name == "int8" && !slices.Equal(shape, []int{2, 0}) {
			t.Errorf("%s has the sizes %d", text, shape)
		}
		x, err := codecs[name].read(flat, shape)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := writeTensor(x, shape); string(got) != text || err != nil {
			t.Errorf("%s became %s, %v", text, got, err)
		}
	}
	nan := array.Of([]float32{float32(math.NaN()), 1, float32(math.Inf(-1))}, 3)
	if got, err := writeTensor(nan, []int{3}); string(got) != "[null,1,null]" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	for _, text := range []string{"[1,[2]]", strings.Repeat("[", 99) + strings.Repeat("]", 99), "[[1],2]", "[[1],[2,3]]", "{}", "[1", "", "[256]", `"x"`, "[null]"} {
		shape, flat, err := flattened([]byte(text))
		if err == nil {
			_, err = codecs["uint8"].read(flat, shape)
		}
		if err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// TestInferFaults: what a job lacks is said.
func TestInferFaults(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.jsonl")
	if err := os.WriteFile(in, []byte("{}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		job  Inference
		want error
	}{
		{t.Context(), Inference{}, ErrJob},
		{t.Context(), Inference{Model: encoder, Records: in, Out: dir, Rows: -1}, ErrJob},
		{t.Context(), Inference{Model: in, Records: in, Out: filepath.Join(dir, "a")}, ErrJob},
		{t.Context(), Inference{Model: encoder, Records: in, Out: filepath.Join(dir, "b"), Query: "+no_such"}, ErrJob},
		{t.Context(), Inference{Model: encoder, Records: filepath.Join(dir, "none"), Out: filepath.Join(dir, "c")}, os.ErrNotExist},
		{canceled, Inference{Model: encoder, Records: in, Out: filepath.Join(dir, "d")}, context.Canceled},
	} {
		if _, err := Infer(c.ctx, c.job); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.job, err, c.want)
		}
	}
}
