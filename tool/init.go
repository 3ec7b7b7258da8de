package tool

import (
	"context"
	"flag"
	"io"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fileio"
)

func initVerb() verb {
	return verb{
		name:     "init",
		args:     "CONFIG OUT",
		synopsis: "make a network with random parameters from config lines",
		detail: `
CONFIG holds config lines as for nnet3-init, "-" is standard input. OUT is the raw model to write, "-" standard output. The parameters
of a component depend only on its name and on --srand.`,
		setup: func(fs *flag.FlagSet) action {
			var seed uint64
			seedFlag(fs, &seed)
			binary := fs.Bool("binary", true, "Write the model in binary")
			return func(ctx context.Context, c *console, args []string) error {
				if err := wantArgs(args, 2, 2, "CONFIG OUT"); err != nil {
					return err
				}
				if sameFile(args[0], args[1]) {
					return usagef("%s is an input and would be overwritten", args[0])
				}
				nn, fromConfig, err := loadNetwork(c, args[0], seed)
				if err != nil {
					return err
				}
				if !fromConfig {
					return usagef("%s is a model, not config lines", args[0])
				}
				if args[1] == "-" {
					return pipeline.Save(fileio.Writer(ctx, c.data), nn, *binary)
				}
				if err := fileio.Write(ctx, args[1], func(w io.Writer) error { return pipeline.Save(w, nn, *binary) }); err != nil {
					return err
				}
				c.say("wrote %s: %s parameters in %d components", args[1], thousands(nn.NumParameters()), len(nn.Components))
				return nil
			}
		},
	}
}
