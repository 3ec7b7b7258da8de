package refcase_test

import (
	"context"
	"fmt"
	"log"

	"github.com/nnopt/nnopt/exec/refcase"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// A case is run with the standard optimizer. The result tells whether the numbers are Kaldi's, and
// how large both computations are.
func ExampleCase_Run() {
	c, err := refcase.LoadDir("../../nnet3/testdata/recipes/tdnn_relu_batchnorm_infer")
	if err != nil {
		log.Fatal(err)
	}
	opt, err := passes.Default().Build(optdb.Include("fast_run"))
	if err != nil {
		log.Fatal(err)
	}
	r := c.Run(context.Background(), "+fast_run", opt)
	fmt.Println(r.Case, r.OK, r.Err)
	fmt.Println("fewer commands than Kaldi:", r.Commands < r.KaldiCommands)
	// Output:
	// tdnn_relu_batchnorm_infer true <nil>
	// fewer commands than Kaldi: true
}
