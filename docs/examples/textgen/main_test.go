package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sugarme/tokenizer"
	"github.com/sugarme/tokenizer/pretrained"

	"github.com/nnopt/nnopt/exec/model"
)

// tiny opens a decoder of two layers and 64 words, with random weights.
func tiny(t *testing.T) (*model.Model, *tokenizer.Tokenizer) {
	m, err := model.Open("../../../exec/model/testdata/decoder.onnx")
	if err != nil {
		t.Fatal(err)
	}
	words, err := pretrained.FromFile("testdata/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	return m, words
}

// TestLikeliest: the text that follows is the one that the model finds likeliest, whatever its pieces, and it ends with
// the token that ends texts, or with the positions.
func TestLikeliest(t *testing.T) {
	m, words := tiny(t)
	for _, test := range []struct {
		n, limit   int
		end, added string
	}{{8, 99, "</s>", "pipGFFFF"}, {3, 99, "</s>", "pip"}, {8, 99, "G", "pip"}, {8, 6, "</s>", "pip"}} {
		var out strings.Builder
		if err := write(t.Context(), &out, words, m, " sFf", test.n, test.limit, test.end, &sampler{}); err != nil {
			t.Fatal(err)
		}
		if out.String() != " sFf"+test.added {
			t.Errorf("%+v: %q", test, &out)
		}
	}
}

// TestStream: what is printed piece by piece is the text of all tokens, with letters of several tokens.
func TestStream(t *testing.T) {
	m, words := tiny(t)
	for seed := range uint64(20) {
		var out strings.Builder
		s := func() *sampler { return &sampler{temperature: 4, topP: 1, random: rand.New(rand.NewPCG(seed, 0))} }
		if err := write(t.Context(), &out, words, m, "for é", 30, 99, "", s()); err != nil {
			t.Fatal(err)
		}
		ids, err := words.EncodeSingle("for é", true)
		if err != nil || !slices.Equal(ids.Ids, []int{58, 1, 54, 55}) {
			t.Fatal(ids.Ids, err)
		}
		all := ids.Ids
		for id, err := range generate(t.Context(), m, all, 99, s()) {
			if err != nil {
				t.Fatal(err)
			}
			if all = append(all, id); len(all) == 34 {
				break
			}
		}
		if text := words.Decode(all, true); !strings.HasPrefix(text, out.String()) || strings.Contains(out.String(), "\ufffd") && !strings.Contains(text, "\ufffd") {
			t.Errorf("seed %d: printed %q of %q", seed, &out, text)
		}
	}
}

// TestSample: tokens are drawn as often as they are likely, and none that topK or topP leave out.
func TestSample(t *testing.T) {
	logits := []float32{float32(math.Log(0.2)), float32(math.Log(0.5)), float32(math.Log(0.25)), float32(math.Log(0.05))}
	for _, test := range []struct {
		s    sampler
		want []float64
	}{
		{sampler{temperature: 1, topP: 1}, []float64{0.2, 0.5, 0.25, 0.05}},
		{sampler{temperature: 1, topP: 1, topK: 2}, []float64{0, 2.0 / 3, 1.0 / 3, 0}},
		{sampler{temperature: 1, topP: 0.8}, []float64{0.2 / 0.95, 0.5 / 0.95, 0.25 / 0.95, 0}},
		{sampler{temperature: 0.5, topP: 1}, []float64{0.04 / 0.355, 0.25 / 0.355, 0.0625 / 0.355, 0.0025 / 0.355}},
		{sampler{temperature: 0}, []float64{0, 1, 0, 0}},
	} {
		test.s.random = rand.New(rand.NewPCG(1, 2))
		got := make([]float64, 4)
		const draws = 20000
		for range draws {
			got[test.s.sample(logits)] += 1.0 / draws
		}
		for i := range got {
			if math.Abs(got[i]-test.want[i]) > 0.02 || test.want[i] == 0 && got[i] != 0 {
				t.Errorf("%+v: got %v, want %v", test.s, got, test.want)
				break
			}
		}
	}
}

// TestErrors: a model that is no decoder, an empty prompt and the end of a context are said.
func TestErrors(t *testing.T) {
	m, words := tiny(t)
	if err := write(t.Context(), &strings.Builder{}, words, m, "", 8, 99, "", &sampler{}); err == nil {
		t.Error("an empty prompt")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := write(ctx, &strings.Builder{}, words, m, "for", 8, 99, "", &sampler{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	encoder, err := model.Open("../../../exec/model/testdata/encoder.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), &strings.Builder{}, words, encoder, "for", 8, 99, "", &sampler{}); !errors.Is(err, model.ErrInput) {
		t.Error(err)
	}
}
