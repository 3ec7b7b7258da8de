package models

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tool"
)

func (o Options) infoVerb() tool.Verb {
	return tool.Verb{
		Name:     "info",
		Before:   "version",
		Args:     "MODEL",
		Synopsis: "or an ONNX model",
		Of:       aModel,
		Detail: `
Of an ONNX model, a file with the extension .onnx, it prints inputs, outputs, the size of the initializers, how often each operator is
applied, and what can't be computed, by node: operators and types of elements. What depends on shapes and values, "$0 eval" finds.`,
		Examples: `$0 info model.onnx`,
		Claims:   isModel,
		Setup: func(_ *tool.Config, fs *flag.FlagSet) tool.Action {
			asJSON := fs.Bool("json", false, "Print a JSON object")
			return tool.Taking(1, 1, "MODEL", func(_ context.Context, c *tool.Console, args []string) error {
				m, err := onnx.ReadFile(args[0])
				if err != nil {
					return err
				}
				gaps, err := session.Unsupported(m, o.lowering(filepath.Dir(args[0]), nil))
				if err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				r := infoReport{m.Info(), gaps}
				if *asJSON {
					return tool.WriteJSON(c.Stdout, r)
				}
				c.Print("%s", r.Text())
				for _, f := range r.Unsupported {
					c.Print("not computed: %v\n", f)
				}
				return nil
			})
		},
	}
}

// An infoReport is the output of info --json.
type infoReport struct {
	*onnx.Info
	// Unsupported lists what can't be computed.
	Unsupported []lower.Gap `json:"unsupported,omitempty"`
}
