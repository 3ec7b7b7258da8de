package models

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool"
)

func (o Options) evalVerb() tool.Verb {
	return tool.Verb{
		Name:     "eval",
		Before:   "version",
		Args:     "MODEL.onnx",
		Synopsis: "run an ONNX model",
		Detail: `
MODEL.onnx is lowered to a graph of tensors, for which --query selects passes, and run. Passes that change results
where something overflows, is infinite or NaN are left out, unless the query names them or their tags, +overflow and +unsafe_nan. An input has the value that --input or --set
gives it, else that of its initializer, else a random one. Random floats are normally distributed, random integers and bools are 0 or 1.
Where the model does not say how large an input is, --shape does; a size with a name is the same in all inputs. Each output is printed
as its type and its first elements; of a sequence, each tensor is. --output-folder writes output_0.pb, output_1.pb, …, tensors of ONNX.`,
		Examples: `
$0 eval --shape x=2x3 model.onnx
$0 eval --set x=1,-2 --shape x=2 --output-folder out model.onnx`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			passes := declarePasses(cfg, fs)
			arguments := declareArguments(fs)
			threads := tool.DeclareThreads(fs)
			folder := fs.String("output-folder", "", "Write the outputs to this folder, which is made if there is none")
			return tool.Taking(1, 1, "MODEL.onnx", func(ctx context.Context, c *tool.Console, args []string) error {
				_, opt, err := passes.Build()
				if err != nil {
					return err
				}
				passes.Tell(c)
				m, _, err := arguments.read(args[0])
				if err != nil {
					return err
				}
				tellDoubts(c, m, args[0])
				inputs, drawn, err := o.arguments(arguments, m)
				if err != nil {
					return err
				}
				if err := c.InVainIf(len(drawn) == 0, "without a random input", "srand"); err != nil {
					return err
				}
				options := o.lowering(filepath.Dir(args[0]), opt)
				options.Threads = threads.Of(1)
				f, err := lowered(ctx, m, options, inputs)
				if err != nil {
					return err
				}
				outputs, err := f.Call(ctx, inputs)
				if err != nil {
					return err
				}
				if *folder != "" {
					return writeOutputs(ctx, *folder, f, outputs)
				}
				printOutputs(c, m, f, outputs)
				return nil
			})
		},
	}
}

// printOutputs prints the outputs of a model: tensors, those of sequences by their indexes, and what has none.
func printOutputs(c *tool.Console, m *onnx.Model, f *session.Function, outputs map[string]*array.Array) {
	rest := f.Outputs()
	for _, out := range m.Graph.Outputs {
		n := 0
		for ; len(rest) > 0 && (rest[0].Name == out.Name && n == 0 || rest[0].Name == lower.Item(out.Name, n)); n++ {
			c.Print("%s: %s\n", rest[0].Name, describe(outputs[rest[0].Name], rest[0].Elem))
			if keys := rest[0].Keys; keys != nil {
				c.Print("%s has a map for each row, with the keys %s\n", rest[0].Name, keys)
			}
			rest = rest[1:]
		}
		switch {
		case n > 0:
		case out.Type != nil && out.Type.Sequence != nil:
			c.Print("%s: no tensors\n", out.Name)
		default:
			c.Print("%s: %s\n", out.Name, none)
		}
	}
}

// writeOutputs writes the outputs as files output_K.pb.
func writeOutputs(ctx context.Context, folder string, f *session.Function, outputs map[string]*array.Array) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for k, o := range f.Outputs() {
		t, err := lower.TensorOf(o.Name, outputs[o.Name], o.Elem)
		if o.Keys != nil {
			err = fmt.Errorf("%w: a file of maps", lower.ErrUnsupported)
		}
		if err != nil {
			return fmt.Errorf("output %s: %w", fileio.Excerpt(o.Name, 0), err)
		}
		if err := fileio.Write(ctx, filepath.Join(folder, fmt.Sprintf("output_%d.pb", k)), t.Write); err != nil {
			return err
		}
	}
	return nil
}

// shown is how many elements of an output are printed.
const shown = 8

// describe returns the type of an array and its first elements.
func describe(a *array.Array, elem onnx.DataType) string {
	var b strings.Builder
	b.WriteString(elem.String())
	if a.NDim() > 0 {
		b.WriteString(strings.ReplaceAll(fmt.Sprint(a.Shape()), " ", ", "))
	}
	for i := range min(a.Len(), shown) {
		switch d := a.DType(); {
		case d == array.String:
			fmt.Fprintf(&b, " %q", a.Strings()[i])
		case d.IsFloat():
			fmt.Fprintf(&b, " %.6g", a.Float(i))
		case d == array.Uint64:
			fmt.Fprintf(&b, " %d", uint64(a.Int(i)))
		default:
			fmt.Fprintf(&b, " %d", a.Int(i))
		}
	}
	if a.Len() > shown {
		b.WriteString(" …")
	}
	return b.String()
}

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
				r := infoReport{m.Info(), gaps, ir.Doubts(m, filepath.Dir(args[0]))}
				if *asJSON {
					return tool.WriteJSON(c.Stdout, r)
				}
				c.Print("%s", r.Text())
				for _, f := range r.Unsupported {
					c.Print("not computed: %v\n", f)
				}
				for _, d := range r.Doubts {
					c.Print("warning: %s\n", d)
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
	// Doubts says what the file does not tell though results depend on it.
	Doubts []string `json:"warnings,omitempty"`
}
