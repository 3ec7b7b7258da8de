package kaldiio_test

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// Features are read from an archive, here one in text on standard input.
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
