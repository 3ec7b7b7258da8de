package model_test

import (
	"context"
	"embed"
	"fmt"
	"log"
	"sync"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/tensor/array"
)

// Two sentences, of which one is shorter, become two vectors.
func Example() {
	m, err := model.Open("testdata/encoder.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	out, err := m.Run(context.Background(), model.Inputs{
		"input_ids":      [][]int64{{1, 4, 2}, {3, 7, 0}},
		"attention_mask": [][]int64{{1, 1, 1}, {1, 1, 0}},
	})
	if err != nil {
		log.Fatal(err)
	}
	v, err := model.Slice[float32](out["embedding"])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.2f %v\n", v, out["embedding"].Shape())
	// Output: [0.71 0.71 0.00 0.41 0.41 0.82] [2 3]
}

//go:embed testdata/encoder.onnx
var encoder []byte

// A model that is part of the program.
func ExampleParse() {
	m, err := model.Parse(encoder)
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range append(m.Inputs(), m.Outputs()...) {
		fmt.Println(v.Name, v)
	}
	// Output:
	// input_ids int64[batch,tokens]
	// attention_mask int64[batch,tokens]
	// embedding float32[batch,3]
}

//go:embed testdata
var files embed.FS

// One with files of external data is embedded with its folder.
func ExampleOpenFS() {
	m, err := model.OpenFS(files, "testdata/encoder.onnx")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Inputs()[0].Dims)
	// Output: [{-1 batch} {-1 tokens}]
}

// An error says what is wrong with an input.
func ExampleInputError() {
	m, err := model.Options{Threads: 1, Sizes: map[string]int{"batch": 1}}.Parse(encoder)
	if err != nil {
		log.Fatal(err)
	}
	ids := [][]int64{{1, 4, 2}}
	for _, in := range []model.Inputs{
		{"input_ids": ids},
		{"input_ids": ids, "attention_msk": ids},
		{"input_ids": ids, "attention_mask": []float32{1, 1, 1}},
		{"input_ids": ids, "attention_mask": []int64{1, 1}},
		{"input_ids": [][]int64{{1, 4, 2}, {3}}, "attention_mask": ids},
	} {
		_, err := m.Run(context.Background(), in)
		fmt.Println(err)
	}
	// Output:
	// model: input "attention_mask": wanted int64[1,tokens], given nothing
	// model: input "attention_msk": wanted one of input_ids, attention_mask, given a name that the model does not have: did you mean attention_mask?
	// model: input "attention_mask": wanted int64[1,tokens], given float32[1,3]: the type of the elements is another one
	// model: input "attention_mask": wanted int64[1,tokens], given int64[1,2]: size 1 should be 3, since tokens is in input_ids
	// model: input "input_ids": wanted int64[1,tokens], given [][]int64: row 1 of dimension 1 has 1 elements, and row 0 has 3
}

// A Runner uses its memory again, and reads tensors where they are.
func ExampleModel_NewRunner() {
	m, err := model.Parse(encoder)
	if err != nil {
		log.Fatal(err)
	}
	ids := []int64{0, 0}
	in := model.Inputs{"input_ids": array.Of(ids, 1, 2), "attention_mask": array.Of([]int64{1, 1}, 1, 2)}
	r := m.NewRunner()
	for i := range int64(3) {
		ids[0], ids[1] = i+1, 7
		out, err := r.Run(context.Background(), in)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(out["embedding"])
	}
	// Output:
	// [[0.81649655, 0.40824828, 0.40824828]]
	// [[0.40824828, 0.81649655, 0.40824828]]
	// [[0.40824828, 0.40824828, 0.81649655]]
}

// Requests of many goroutines are computed together.
func ExampleModel_NewBatcher() {
	m, err := model.Parse(encoder)
	if err != nil {
		log.Fatal(err)
	}
	b, err := m.NewBatcher(model.BatcherOptions{MaxRows: 64})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	first := make([]float32, 8)
	var wg sync.WaitGroup
	for i := range first {
		wg.Go(func() {
			out, err := b.Run(context.Background(), model.Inputs{"input_ids": [][]int64{{int64(i), 7}}, "attention_mask": [][]int64{{1, 1}}})
			if err != nil {
				log.Fatal(err)
			}
			first[i] = float32(out["embedding"].Float(0))
		})
	}
	wg.Wait()
	fmt.Printf("%.2f\n", first)
	// Output:
	// [0.58 0.82 0.41 0.41 0.67 0.33 0.67 0.58]
}
