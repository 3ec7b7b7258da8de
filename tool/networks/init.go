package networks

import (
	"context"
	"flag"
	"io"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/display"
)

func (o *Options) initVerb() tool.Verb {
	return tool.Verb{
		Name:     "init",
		Before:   "version",
		Args:     "CONFIG OUT",
		Synopsis: "make a network with random parameters from config lines",
		Detail: `
CONFIG holds config lines as for nnet3-init, "-" is standard input. OUT is the raw model to write, "-" standard output. The parameters
of a component depend only on its name and on --srand.`,
		Examples: `
$0 init net.config net.raw
$0 init --srand=7 --binary=false net.config -`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			var seed uint64
			seedFlag(fs, &seed)
			binary := fs.Bool("binary", true, "Write the model in binary")
			return tool.Taking(2, 2, "CONFIG OUT", func(ctx context.Context, c *tool.Console, args []string) error {
				if tool.SameFile(args[0], args[1]) {
					return tool.Usagef("%s is an input and would be overwritten", args[0])
				}
				nn, fromConfig, err := o.network(c, args[0], seed)
				if err != nil {
					return err
				}
				if !fromConfig {
					return tool.Usagef("%s is a model, not config lines", args[0])
				}
				if args[1] == "-" {
					return pipeline.Save(fileio.Writer(ctx, c.Data), nn, *binary)
				}
				if err := fileio.Write(ctx, args[1], func(w io.Writer) error { return pipeline.Save(w, nn, *binary) }); err != nil {
					return err
				}
				c.Say("wrote %s: %s parameters in %d components", args[1], display.Thousands(nn.NumParameters()), len(nn.Components))
				return nil
			})
		},
	}
}
