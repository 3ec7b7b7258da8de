package descriptor_test

import (
	"fmt"

	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
)

func Example() {
	names := []string{"input", "tdnn1"}
	d, err := descriptor.Parse("Append(Offset(input, -1), Sum(input, Scale(0.5, IfDefined(tdnn1))))", func(name string) (int, bool) {
		for i, n := range names {
			if n == name {
				return i, true
			}
		}
		return 0, false
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The row of sequence 0 at time 10, without any rows of tdnn1.
	row := index.Index{N: 0, T: 10}
	has := func(c index.Cindex) bool { return c.Node == 0 }
	for i := range d.Parts {
		terms, _, ok := d.Parts[i].Eval(row, has, nil)
		fmt.Println(terms, ok)
	}
	fmt.Println(d.Format(func(i int) string { return names[i] }))
	// Output:
	// [{node0(0,9) 1}] true
	// [{node0(0,10) 1}] true
	// Append(Offset(input, -1), Sum(input, IfDefined(Scale(0.5, tdnn1))))
}
