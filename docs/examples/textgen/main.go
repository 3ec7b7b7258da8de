// Command textgen continues a text with a decoder as ONNX: the keys and values of earlier tokens are carried from step to
// step, the next token is drawn from the likeliest, and the text is printed as it comes.
//
//	textgen -model decoder.onnx -tokenizer tokenizer.json -temperature 0.8 "Once upon a time"
//
// The decoder is one with past_key_values, as Optimum exports it (text-generation-with-past), the tokenizer the
// tokenizer.json beside it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sugarme/tokenizer"
	"github.com/sugarme/tokenizer/pretrained"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/kernel"
)

func main() {
	file := flag.String("model", "model.onnx", "the decoder")
	words := flag.String("tokenizer", "tokenizer.json", "its tokenizer")
	n := flag.Int("n", 64, "tokens to add at most")
	end := flag.String("end", "</s>", "the token that ends a text")
	limit := flag.Int("positions", 2048, "tokens of a text at most, with the prompt")
	var s sampler
	flag.Float64Var(&s.temperature, "temperature", 0.8, "1 draws as the model has learnt, less more certainly, 0 the likeliest")
	flag.IntVar(&s.topK, "top-k", 40, "tokens to draw from; 0 for all")
	flag.Float64Var(&s.topP, "top-p", 0.95, "probability of those to draw from; 1 for all")
	seed := flag.Uint64("seed", 1, "one seed draws one text")
	flag.Parse()
	s.random = rand.New(rand.NewPCG(*seed, 0))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	t, err := pretrained.FromFile(*words)
	if err != nil {
		log.Fatal(err)
	}
	m, err := model.Open(*file)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	if err := write(ctx, os.Stdout, t, m, strings.Join(flag.Args(), " "), *n, *limit, *end, &s); err != nil {
		log.Fatal(err)
	}
}

// write writes a prompt and what follows it, token by token, and then says how long it took.
func write(ctx context.Context, w io.Writer, t *tokenizer.Tokenizer, m *model.Model, prompt string, n, limit int, end string, s *sampler) error {
	encoding, err := t.EncodeSingle(prompt, true)
	if err != nil {
		return err
	}
	ids := encoding.Ids
	if len(ids) == 0 {
		return errors.New("an empty prompt")
	}
	last, ends := t.TokenToId(end)
	printed := t.Decode(ids, true)
	fmt.Fprint(w, printed)
	begin, first, count := time.Now(), time.Duration(0), 0
	for id, err := range generate(ctx, m, ids, limit, s) {
		if err != nil {
			return err
		}
		if count++; count == 1 {
			first = time.Since(begin)
		}
		if ends && id == last {
			break
		}
		// A letter may be more than one token, and a token may change how those before it are written. So the whole text
		// is decoded, and printed as far as it is complete.
		ids = append(ids, id)
		text := t.Decode(ids, true)
		if r, _ := utf8.DecodeLastRuneInString(text); r != utf8.RuneError && strings.HasPrefix(text, printed) {
			fmt.Fprint(w, text[len(printed):])
			printed = text
		}
		if count == n {
			break
		}
	}
	step := (time.Since(begin) - first) / time.Duration(max(count-1, 1))
	fmt.Fprintf(os.Stderr, "\nthe first of %d tokens took %v, the others %v each\n", count, first.Round(time.Millisecond), step.Round(time.Microsecond))
	return nil
}

// generate yields the tokens that follow a prompt, until the positions end.
func generate(ctx context.Context, m *model.Model, prompt []int, limit int, s *sampler) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		steps, err := m.NewStateful() // past_key_values.0.key is present.0.key of the run before
		if err != nil {
			yield(0, err)
			return
		}
		steps.Limit = limit
		next := prompt
		for {
			logits, err := step(ctx, steps, next)
			if err != nil {
				yield(0, err)
				return
			}
			id := s.sample(logits)
			if !yield(id, nil) || steps.Positions() == limit {
				return
			}
			next = []int{id}
		}
	}
}

// step returns the logits of the token that comes after some.
func step(ctx context.Context, steps *model.Stateful, tokens []int) ([]float32, error) {
	out, err := steps.Run(ctx, model.Inputs{"input_ids": [][]int{tokens}})
	if err != nil {
		return nil, err
	}
	logits, err := model.Slice[float32](out["logits"]) // [1, tokens, words]
	if err != nil {
		return nil, err
	}
	shape := out["logits"].Shape()
	return logits[len(logits)-shape[len(shape)-1]:], nil
}

// A sampler draws tokens.
type sampler struct {
	temperature float64
	topK        int
	topP        float64
	random      *rand.Rand

	order   []int
	weights []float64
}

// sample returns a token. It is one of the topK likeliest, and of the fewest whose probabilities sum to topP.
func (s *sampler) sample(logits []float32) int {
	if s.temperature <= 0 {
		return slices.Index(logits, slices.Max(logits))
	}
	s.order, s.weights = s.order[:0], s.weights[:0]
	for id := range logits {
		s.order = append(s.order, id)
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
	if s.topK > 0 {
		s.order = s.order[:min(s.topK, len(s.order))]
	}
	best, sum := logits[s.order[0]], 0.0
	for _, id := range s.order {
		w := kernel.Exp(float64(logits[id]-best) / s.temperature)
		s.weights = append(s.weights, w)
		sum += w
	}
	kept, n := 0.0, 0
	for kept < s.topP*sum && n < len(s.weights) {
		kept, n = kept+s.weights[n], n+1
	}
	at := s.random.Float64() * kept
	for i, w := range s.weights[:n] {
		if at -= w; at < 0 {
			return s.order[i]
		}
	}
	return s.order[max(n-1, 0)]
}
