package kaldiio_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// This example reads features from an archive, here in text on standard input.
func Example() {
	in := strings.NewReader("utt1 [\n 1 2\n 3 4 ]\nutt2 [\n 5 6 ]\n")
	table, err := kaldiio.NewTableReader(&kaldiio.Opener{Stdin: in}, "ark:-", kaldiio.MatrixHolder())
	if err != nil {
		fmt.Println(err)
		return
	}
	for key, m := range table.All() {
		fmt.Println(key, m.Rows, m.Cols, m.Row(m.Rows-1))
	}
	if err := table.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// utt1 2 2 [3 4]
	// utt2 1 2 [5 6]
}

// This example writes vectors to an archive, here in text on standard output.
func ExampleTableWriter() {
	table, err := kaldiio.NewTableWriter(&kaldiio.Opener{Stdout: os.Stdout}, "ark,t:-", (*kaldiio.Writer).Vector)
	if err != nil {
		fmt.Println(err)
		return
	}
	table.Write("utt1", []float32{1, 0.5})
	table.Write("utt2", nil)
	if err := table.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// utt1  [ 1 0.5 ]
	// utt2  [ ]
}

// A structure is read token by token. Errors say where they occurred.
func ExampleReader() {
	r, err := kaldiio.NewReader(strings.NewReader("<Sizes> 3 4 <Name> tdnn </Sizes> "), "sizes.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := r.Expect("<Sizes>"); err != nil {
		fmt.Println(err)
		return
	}
	rows, _ := r.Int()
	cols, _ := r.Int()
	fmt.Println(rows, cols, r.PeekIs("<Name>"))
	fmt.Println(r.Expect("</Sizes>"))
	// Output:
	// 3 4 true
	// sizes.txt: line 1 (byte 12): expected token </Sizes>, got "<Name>" (after <Sizes>)
}
