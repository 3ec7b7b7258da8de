package tool_test

import (
	"bytes"
	"context"
	"flag"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/tool"
)

// describing returns a verb that prints its arguments. Claimed ones begin with a prefix.
func describing(of, claims string, flags ...string) tool.Verb {
	v := tool.Verb{Name: "describe", Args: of, Synopsis: "about " + of, Of: of, Detail: "Detail of " + of + ".", Examples: "$0 describe " + of}
	if claims != "" {
		v.Claims = func(arg string) bool { return strings.HasPrefix(arg, claims) }
	}
	v.Setup = func(_ *tool.Config, fs *flag.FlagSet) tool.Action {
		loud := fs.Bool("loud", false, "Print in capitals")
		for _, name := range flags {
			fs.Int(name, 0, "Of "+of)
		}
		return func(_ context.Context, c *tool.Console, args []string) error {
			text := of + ": " + strings.Join(args, " ") + "\n"
			if *loud {
				text = strings.ToUpper(text)
			}
			c.Print("%s", text)
			if strings.Contains(text, "bad") {
				return tool.ErrSilent
			}
			return nil
		}
	}
	return v
}

// TestSharedVerb: a verb that claims arguments joins one of its name, in whatever order the dialects
// come. Each of the two gets its arguments and its flags.
func TestSharedVerb(t *testing.T) {
	trees, birds := &tool.Dialect{Name: "trees", Verbs: []tool.Verb{describing("trees", "", "rings")}}, &tool.Dialect{Name: "birds", Verbs: []tool.Verb{describing("birds", "b", "eggs")}}
	for _, dialects := range [][]*tool.Dialect{{trees, birds}, {birds, trees}} {
		call := func(args ...string) (status int, text string) {
			var out bytes.Buffer
			status = tool.Config{Dialects: dialects}.Run(t.Context(), args, nil, &out, &out)
			return status, out.String()
		}
		for _, c := range []struct {
			args   string
			status int
			want   string
		}{
			{"describe", 0, "trees: \n"},
			{"describe oak", 0, "trees: oak\n"},
			{"describe blackbird", 0, "birds: blackbird\n"},
			{"describe oak blackbird fir", 0, "trees: oak fir\nbirds: blackbird\n"},
			{"describe bad-oak", 1, "birds: bad-oak\n"},
			{"describe --loud oak blackbird", 0, "TREES: OAK\nBIRDS: BLACKBIRD\n"},
			{"describe --rings=3 oak", 0, "trees: oak\n"},
			{"describe --rings=3 blackbird", 2, "--rings has no meaning for birds"},
			{"describe --eggs=3 oak", 2, "--eggs has no meaning for trees; for birds: birds"},
			{"describe --eggs=x blackbird", 2, "--eggs=x"},
			{"describe --loud=perhaps oak", 2, "--loud=perhaps"},
			{"help describe", 0, "about trees; about birds"},
			{"help describe", 0, "describe [flags] trees|birds\n\nDetail of trees.\n\nDetail of birds.\n"},
			{"help describe", 0, "  nnopt describe trees\n  nnopt describe birds\n"},
			{"help describe", 0, "--loud  : Print in capitals (default = false)\n"},
		} {
			status, out := call(strings.Fields(c.args)...)
			if status != c.status || !strings.Contains(out, c.want) {
				t.Errorf("%s: status %d\n%s", c.args, status, out)
			}
		}
	}
	// Without another one of its name, it is a verb like any other.
	var out bytes.Buffer
	if status := (tool.Config{Dialects: []*tool.Dialect{birds}}).Run(t.Context(), []string{"describe", "oak"}, nil, &out, &out); status != 0 || out.String() != "birds: oak\n" {
		t.Errorf("status %d\n%s", status, out.String())
	}
}

// TestSharedVerbFails: a fault that one verb reported does not keep the other from running, and counts.
func TestSharedVerbFails(t *testing.T) {
	trees, birds := &tool.Dialect{Name: "trees", Verbs: []tool.Verb{describing("trees", "")}}, &tool.Dialect{Name: "birds", Verbs: []tool.Verb{describing("birds", "b")}}
	var out bytes.Buffer
	if status := (tool.Config{Dialects: []*tool.Dialect{trees, birds}}).Run(t.Context(), []string{"describe", "rotten-bad", "blackbird"}, nil, &out, &out); status != 1 || out.String() != "trees: rotten-bad\nbirds: blackbird\n" {
		t.Errorf("status %d\n%s", status, out.String())
	}
}
