package tutorial

import (
	"context"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/exec/model"
)

const models = "../../../exec/model/testdata/"

func Example_wrongInput() {
	m, err := model.Open(models + "encoder.onnx")
	check(err)
	for _, v := range append(m.Inputs(), m.Outputs()...) {
		fmt.Println(v.Name, v)
	}
	_, err = m.Run(context.Background(), model.Inputs{"input_ids": [][]int64{{1, 4, 2}}, "attention_mask": [][]int64{{1, 1}}})
	fmt.Println(err)
	// Output:
	// input_ids int64[batch,tokens]
	// attention_mask int64[batch,tokens]
	// embedding float32[batch,3]
	// model: input "attention_mask": wanted int64[batch,tokens], given int64[1,2]: size 1 should be 3, since tokens is in input_ids
}

func Example_generate() {
	m, err := model.Open(models + "decoder.onnx")
	check(err)
	s, err := m.NewStateful() // past_key_values.0.key is present.0.key of the run before, and so on
	check(err)
	s.Limit = 4096 // positions
	next := []int64{1, 20, 33, 7}
	for range 8 {
		out, err := s.Run(context.Background(), model.Inputs{"input_ids": [][]int64{next}})
		check(err)
		logits, err := model.Slice[float32](out["logits"]) // of shape [1, tokens, 64]
		check(err)
		last := logits[len(logits)-64:]
		next = []int64{int64(slices.Index(last, slices.Max(last)))}
		fmt.Print(next[0], " ")
	}
	fmt.Println("after", s.Positions(), "positions")
	// Output:
	// 17 10 17 34 33 33 33 33 after 11 positions
}
