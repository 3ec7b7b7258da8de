// Command sentences finds the lines of a text that are nearest in meaning to a question: a tokenizer, a sentence encoder
// as ONNX, and the cosine between vectors.
//
//	sentences -model model.onnx -tokenizer tokenizer.json "how do I undo a commit?" < lines.txt
//
// Both files are what sentence-transformers publishes beside a model; tokenizer.json is WordPiece, BPE or Unigram.
package main

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"unicode"

	"github.com/sugarme/tokenizer"
	"github.com/sugarme/tokenizer/normalizer"
	"github.com/sugarme/tokenizer/pretrained"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/nnopt/nnopt/exec/model"
)

func main() {
	file := flag.String("model", "model.onnx", "the encoder")
	words := flag.String("tokenizer", "tokenizer.json", "its tokenizer")
	batch := flag.Int("batch", 16, "sentences that are encoded together")
	tokens := flag.Int("tokens", 256, "tokens of a sentence; what is longer is cut off")
	n := flag.Int("n", 3, "lines to print for a question")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	e, err := newEncoder(*file, *words, *batch, *tokens)
	if err != nil {
		log.Fatal(err)
	}
	defer e.model.Close()
	if err := search(ctx, os.Stdout, os.Stdin, e, flag.Args(), *n); err != nil {
		log.Fatal(err)
	}
}

// search prints the n lines of r that are nearest to each question, with their cosines.
func search(ctx context.Context, w io.Writer, r io.Reader, e *encoder, questions []string, n int) error {
	var lines []string
	for s := bufio.NewScanner(r); ; {
		if !s.Scan() {
			if s.Err() != nil {
				return s.Err()
			}
			break
		}
		if s.Text() != "" {
			lines = append(lines, s.Text())
		}
	}
	vectors, err := e.encode(ctx, lines)
	if err != nil {
		return err
	}
	asked, err := e.encode(ctx, questions)
	if err != nil {
		return err
	}
	for i, q := range asked {
		fmt.Fprintln(w, questions[i])
		for _, h := range nearest(q, vectors, n) {
			fmt.Fprintf(w, "%7.3f  %s\n", h.cosine, lines[h.line])
		}
	}
	return nil
}

// A hit is a line with the cosine between its vector and another one.
type hit struct {
	line   int
	cosine float32
}

// nearest returns the n vectors that are nearest to q, best first. All have length 1.
func nearest(q blas32.Vector, vectors []blas32.Vector, n int) []hit {
	hits := make([]hit, len(vectors))
	for i, v := range vectors {
		hits[i] = hit{i, blas32.Dot(q, v)}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.cosine, a.cosine) })
	return hits[:min(n, len(hits))]
}

// An encoder makes vectors of sentences.
type encoder struct {
	model   *model.Model
	words   *tokenizer.Tokenizer
	uncased bool
	batch   int
}

func newEncoder(file, words string, batch, tokens int) (*encoder, error) {
	t, err := pretrained.FromFile(words)
	if err != nil {
		return nil, err
	}
	// What the files of tokenizers say of these is what their trainer happened to use, often 128 of both.
	t.WithPadding(nil)
	t.WithTruncation(&tokenizer.TruncationParams{MaxLength: tokens})
	m, err := model.Open(file)
	if err != nil {
		return nil, err
	}
	// Lower case of BERT has no accents, which the library leaves: it takes them off letters only where they are runes
	// of their own.
	n, ok := t.GetNormalizer().(*normalizer.BertNormalizer)
	return &encoder{m, t, ok && n.Lowercase, max(batch, 1)}, nil
}

// encode returns a vector of length 1 for each sentence.
func (e *encoder) encode(ctx context.Context, sentences []string) ([]blas32.Vector, error) {
	ids := make([][]int, len(sentences))
	order := make([]int, len(sentences))
	for i, s := range sentences {
		if e.uncased {
			s, _, _ = transform.String(transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn))), s) // which can't fail
		}
		t, err := e.words.EncodeSingle(s, true)
		if err != nil {
			return nil, err
		}
		ids[i], order[i] = t.Ids, i
	}
	// Sentences of about one length waste the least on padding.
	slices.SortStableFunc(order, func(a, b int) int { return len(ids[a]) - len(ids[b]) })
	vectors := make([]blas32.Vector, len(sentences))
	for group := range slices.Chunk(order, e.batch) {
		rows := make([][]int, len(group))
		for k, i := range group {
			rows[k] = ids[i]
		}
		found, err := e.run(ctx, rows)
		if err != nil {
			return nil, err
		}
		for k, i := range group {
			vectors[i] = found[k]
		}
	}
	return vectors, nil
}

// run encodes sentences that are ids of tokens, the last one the longest.
func (e *encoder) run(ctx context.Context, rows [][]int) ([]blas32.Vector, error) {
	width := len(rows[len(rows)-1])
	ids, mask := make([][]int64, len(rows)), make([][]int64, len(rows))
	for i, row := range rows {
		ids[i], mask[i] = make([]int64, width), make([]int64, width)
		for k, id := range row {
			ids[i][k], mask[i][k] = int64(id), 1
		}
	}
	inputs := model.Inputs{"input_ids": ids, "attention_mask": mask}
	for _, in := range e.model.Inputs() {
		if in.Name == "token_type_ids" { // BERT's; all of one sentence
			inputs[in.Name] = model.Tensor(make([]int64, len(rows)*width), len(rows), width)
		}
	}
	out, err := e.model.Run(ctx, inputs)
	if err != nil {
		return nil, err
	}
	name := e.model.Outputs()[0].Name
	shape := out[name].Shape()
	data, err := model.Slice[float32](out[name])
	if err != nil {
		return nil, err
	}
	vectors := make([]blas32.Vector, len(rows))
	for i := range rows {
		switch size := shape[len(shape)-1]; len(shape) {
		case 2:
			vectors[i] = blas32.Vector{N: size, Inc: 1, Data: data[i*size : (i+1)*size]}
		case 3: // of each token: sentence-transformers takes the mean of those that are not padding
			v := blas32.Vector{N: size, Inc: 1, Data: make([]float32, size)}
			for k := range rows[i] {
				blas32.Axpy(1, blas32.Vector{N: size, Inc: 1, Data: data[(i*width+k)*size:]}, v)
			}
			vectors[i] = v
		default:
			return nil, fmt.Errorf("output %s has shape %v; a vector for each sentence, or each token, was expected", name, shape)
		}
		if norm := blas32.Nrm2(vectors[i]); norm > 0 {
			blas32.Scal(1/norm, vectors[i])
		}
	}
	return vectors, nil
}
