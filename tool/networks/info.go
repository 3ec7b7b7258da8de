package networks

import (
	"context"
	"flag"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/tool"
)

func (o *Options) infoVerb() tool.Verb {
	return tool.Verb{
		Name:     "info",
		Before:   "version",
		Of:       "a network",
		Args:     "MODEL",
		Synopsis: "describe a network: nodes, components, context",
		Detail: `
MODEL is a Kaldi nnet3 model (raw or .mdl, binary or text) or a file of config lines, "-" standard input.`,
		Examples: `
$0 info final.mdl`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			var seed uint64
			seedFlag(fs, &seed)
			asJSON := fs.Bool("json", false, "Print a JSON object")
			return tool.Taking(1, 1, "MODEL", func(ctx context.Context, c *tool.Console, args []string) error {
				nn, fromConfig, err := o.network(c, args[0], seed)
				if err != nil {
					return err
				}
				if err := c.InVainIf(!fromConfig, ownParameters, "srand"); err != nil {
					return err
				}
				report := newInfoReport(nn)
				if *asJSON {
					return tool.WriteJSON(c.Stdout, report)
				}
				if report.ContextError != "" {
					c.Say("the context is unknown: %s", report.ContextError)
				} else {
					c.Print("left-context: %d\nright-context: %d\n", *report.LeftContext, *report.RightContext)
					if report.SmallestChunk > 1 {
						c.Print("smallest-chunk: %d\n", report.SmallestChunk)
					}
				}
				c.Print("%s", nn.Info())
				return nil
			})
		},
	}
}

// An infoReport is the output of info --json.
type infoReport struct {
	Parameters   int    `json:"parameters"`
	Modulus      int    `json:"modulus"`
	LeftContext  *int   `json:"left_context,omitempty"`
	RightContext *int   `json:"right_context,omitempty"`
	ContextError string `json:"context_error,omitempty"`
	// SmallestChunk is the smallest number of frames in a chunk, without context.
	SmallestChunk int `json:"smallest_chunk,omitempty"`

	Nodes      []nodeInfo      `json:"nodes"`
	Components []componentInfo `json:"components"`
}

type nodeInfo struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Dim  int    `json:"dim"`
	Line string `json:"config"`
}

type componentInfo struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	InputDim  int    `json:"input_dim"`
	OutputDim int    `json:"output_dim"`
	Unused    bool   `json:"unused,omitempty"`
}

func newInfoReport(nn *nnet3.Nnet) infoReport {
	r := infoReport{Parameters: nn.NumParameters(), Modulus: nn.Modulus(), Nodes: []nodeInfo{}, Components: []componentInfo{}}
	var outputs []string
	for i := range nn.Nodes {
		if nn.IsOutputNode(i) {
			outputs = append(outputs, nn.Nodes[i].Name)
		}
	}
	if left, right, err := compile.Context(nn, outputs...); err != nil {
		r.ContextError = err.Error()
	} else if smallest, err := compile.SmallestChunk(nn, outputs...); err != nil {
		r.ContextError = err.Error()
	} else {
		r.LeftContext, r.RightContext, r.SmallestChunk = &left, &right, smallest
	}
	for i := range nn.Nodes {
		if line := nn.ConfigLine(i); line != "" {
			r.Nodes = append(r.Nodes, nodeInfo{nn.Nodes[i].Name, nn.Nodes[i].Kind.String(), nn.OutputDim(i), line})
		}
	}
	for i, c := range nn.Components {
		r.Components = append(r.Components, componentInfo{Name: nn.ComponentNames[i], Type: c.Type(), InputDim: c.InputDim(), OutputDim: c.OutputDim()})
	}
	for _, i := range nn.UnusedComponents() {
		r.Components[i].Unused = true
	}
	return r
}
