package decodable_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// An archive is scored by a network that takes the difference of a frame and the one before.
func Example() {
	nn, err := nnet3.ParseConfig(strings.NewReader(`
input-node name=input dim=1
output-node name=output input=Sum(input, Scale(-1, Offset(input, -1)))`), "example", 0)
	if err != nil {
		log.Fatal(err)
	}
	opt, err := passes.Default().Build(optdb.Include("fast_run"))
	if err != nil {
		log.Fatal(err)
	}
	scorer, err := decodable.New(nn, decodable.Options{FramesPerChunk: 2, Optimizer: opt})
	if err != nil {
		log.Fatal(err)
	}
	stdin := strings.NewReader("hello [\n 1\n 2\n 4\n 8\n 16 ]\nempty [ ]\nworld [\n 5\n 3 ]\n")
	tables, err := decodable.OpenTables(&kaldiio.Opener{Stdin: stdin}, decodable.TableNames{Features: "ark:-"})
	if err != nil {
		log.Fatal(err)
	}
	sum, err := scorer.Run(context.Background(), tables.Utterances(), func(u decodable.Utterance, out kernel.Matrix) error {
		fmt.Println(u.Key, out.Data)
		return nil
	}, decodable.RunOptions{Workers: 2, Failed: func(key string, err error) {
		fmt.Printf("%s: %v\n", key, err)
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum.Utterances, "scored,", sum.Failed, "failed")
	// Output:
	// hello [0 1 2 4 8]
	// empty: the utterance has no frames
	// world [0 -2]
	// 2 scored, 1 failed
}

// Frames come in pieces, and rows leave as soon as they can be computed: here two at a time, a frame
// late, because the network looks one frame ahead.
func ExampleStream() {
	nn, err := nnet3.ParseConfig(strings.NewReader(`
input-node name=input dim=1
output-node name=output input=Sum(Offset(input, 1), Scale(-1, input))`), "example", 0)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	streamer, err := decodable.NewStreamer(ctx, nn, decodable.Options{FramesPerChunk: 2})
	if err != nil {
		log.Fatal(err)
	}
	stream := streamer.NewStream()
	for _, piece := range [][]float32{{1}, {2, 4, 8}, {16}} {
		if err := stream.Accept(kernel.Matrix{Rows: len(piece), Cols: 1, Stride: 1, Data: piece}); err != nil {
			log.Fatal(err)
		}
		y, err := stream.Rows(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(piece), "frames,", y.Rows, "rows", y.Data)
	}
	stream.Finish()
	for {
		y, err := stream.Rows(ctx)
		if err == io.EOF {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		fmt.Println("the rest:", y.Data)
	}
	// Output:
	// 1 frames, 0 rows []
	// 3 frames, 2 rows [1 2]
	// 1 frames, 2 rows [4 8]
	// the rest: [0]
}
