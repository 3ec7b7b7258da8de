package standard_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/standard"
)

// otherConfig is a program with a pass and a verb of its own.
func otherConfig() standard.Program {
	return standard.Program{
		Name: "other",
		Doc:  "Other says hello.",
		Database: func() (*optdb.SequenceDB, error) {
			db := passes.Default()
			rule := pattern.Must(tensorpass.Vocabulary(), "(tanh (tanh x))", "(tanh x)", pattern.Named("tanh_once"), pattern.Doc("drops the second of two tanhs"))
			return db, db.Register("tanhs", rewrite.In2Out("tanhs", rule), 1.3, "fast_run", "tanh")
		},
		Verbs: []tool.Verb{{
			Name:     "hello",
			Args:     "NAME",
			Synopsis: "greet somebody, as only $0 does",
			Detail:   `"$0 hello world" greets the world.`,
			Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
				loud := fs.Bool("loud", false, "Greet as $0 does on holidays")
				return func(_ context.Context, c *tool.Console, args []string) error {
					if len(args) != 1 {
						return tool.Usagef("NAME expected")
					}
					db, err := cfg.Database()
					if err != nil {
						return err
					}
					c.Say("%d entries", len(db.Entries()))
					c.Print("hello %s\n", map[bool]string{false: args[0], true: strings.ToUpper(args[0])}[*loud])
					return nil
				}
			},
		}},
	}
}

// call calls the program of a configuration.
func call(cfg standard.Program, args ...string) result {
	var stdout, stderr bytes.Buffer
	status := cfg.Config().Run(context.Background(), args, nil, &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// other calls the program of otherConfig.
func other(args ...string) result { return call(otherConfig(), args...) }

// TestConfigVerb: a verb of the caller is listed, explained, and reads its flags like ours.
func TestConfigVerb(t *testing.T) {
	all := other("help").ok(t).stdout
	contains(t, all, "Other says hello.\n\nusage: other VERB", "  hello      greet somebody, as only other does\n", "  expr ", `"other help VERB"`)
	contains(t, other("hello", "--help").ok(t).stdout, "usage: other hello [flags] NAME\n\n\"other hello world\" greets", "Greet as other does on holidays (default = false)")
	if r := other("hello", "world", "--loud").ok(t); r.stdout != "hello WORLD\n" || !strings.Contains(r.stderr, " entries\n") {
		t.Errorf("prints %q and %q", r.stdout, r.stderr)
	}
	other("hello").fails(t, statusUsage, "other hello: NAME expected", `"other help hello" tells more`)
	other("helo").fails(t, statusUsage, `did you mean "hello"?`)
}

// TestConfigReplacesVerb: a verb takes the place of ours of the same name.
func TestConfigReplacesVerb(t *testing.T) {
	cfg := otherConfig()
	cfg.Verbs[0].Name = "demo"
	if r := call(cfg, "demo", "you").ok(t); r.stdout != "hello you\n" {
		t.Error(r.stdout)
	}
}

// TestConfigDatabase: all verbs know a pass of the caller's database, and nnopt does not.
func TestConfigDatabase(t *testing.T) {
	contains(t, other("passes", "--query", "none +tanh").ok(t).stdout, "tanhs", "drops the second of two tanhs")
	contains(t, other("expr", "--trace=tanhs", "tanh(tanh(x))").ok(t).stderr, "tanhs/tanh_once: tanh(tanh(x)) -> tanh(x)", "1 ops, 2 as typed")
	contains(t, other("expr", "--why-not=tanh_once", "--query=none +tanh", "tanh(x)").ok(t).stderr, "why not: tanhs/tanh_once: at tanh(x): ")
	config := file(t, "net.config", smallConfig)
	contains(t, other("compile", "--help").ok(t).stdout, "usage: other compile", `"other passes" lists`)
	other("compile", "--optimization.tanhs=false", config).ok(t)
	nnopt(t, "compile", "--optimization.tanhs=false", config).fails(t, statusUsage, "--optimization.tanhs")
	nnopt(t, "passes", "--explain=tanhs").fails(t, statusUsage, "tanhs")
}

// TestConfigRules: the machine checks the rules of the caller's database, next to ours.
func TestConfigRules(t *testing.T) {
	rules := func(p standard.Program) []rulecheck.Entry {
		cfg := p.Config()
		i := slices.IndexFunc(cfg.Dialects, func(d *tool.Dialect) bool { return d.Name == "tensor" })
		db, err := cfg.Database()
		if err != nil {
			t.Fatal(err)
		}
		return cfg.Dialects[i].Rules(&cfg, db.Entries())
	}
	ours, entries := len(rules(standard.Program{})), rules(otherConfig())
	if ours != len(tensorpass.Rules()) || len(entries) != ours+1 {
		t.Fatalf("%d rules, and %d of nnopt, which has %d", len(entries), ours, len(tensorpass.Rules()))
	}
	if e := entries[ours]; rewrite.Describe(e.Rule).Name != "tanhs" || !slices.Equal(e.Tags, []string{"fast_run", "tanh"}) {
		t.Errorf("%s: %v", rewrite.Describe(e.Rule).Name, e.Tags)
	}
}

// TestConfigLanguage: a function of the caller is known in expressions, and only in his program.
func TestConfigLanguage(t *testing.T) {
	cfg := otherConfig()
	cfg.Language = expr.Default().Must(expr.Definition{Name: "cube", Function: func(in ...*fgraph.Variable) (*fgraph.Variable, error) {
		if len(in) != 1 {
			return nil, errors.New("one argument is expected")
		}
		return tensor.Mul(in[0], in[0], in[0]), nil
	}})
	if r := call(cfg, "expr", "--query=none", "cube(exp(x)) + x.cube()").ok(t); r.stdout != "[add(mul(*1 -> exp(x), *1, *1), mul(x, x, x))]\n" {
		t.Error(r.stdout)
	}
	call(cfg, "expr", "cube(x, y)").fails(t, statusUsage, "column 1: cube: one argument is expected")
	call(cfg, "expr", "cubee(x)").fails(t, statusUsage, "there is no function cubee; did you mean cube?")
	call(cfg, "expr", "--rule", "(cube x) => x", "x").fails(t, statusUsage, "unknown op: cube; it is a function of expressions")
	nnopt(t, "expr", "cube(x)").fails(t, statusUsage, "there is no function cube")
}

// TestSuggestions: a misspelt name is corrected wherever names are written.
func TestSuggestions(t *testing.T) {
	for _, c := range []struct {
		args   []string
		wanted string
	}{
		{[]string{"expr", "sofmtax(x)"}, "did you mean softmax?"},
		{[]string{"expr", "sum{axs=0}(x)"}, "sum takes other parameters"},
		{[]string{"expr", "sum(x, axsi=0)"}, "did you mean axis?"},
		{[]string{"expr", "x.shpe"}, "did you mean shape?"},
		{[]string{"expr", "cast(x, 'flaot32')"}, "did you mean float32?"},
		{[]string{"expr", "x", "--vars", "x: vectro"}, "did you mean vector?"},
		{[]string{"expr", "cost", "--grad", "csot"}, "did you mean cost?"},
		{[]string{"expr", "x", "--rule", "(exq x) => x"}, "did you mean exp?"},
		{[]string{"expr", "x", "--rule", "(exp x) && psoitive(x) => x"}, "did you mean positive?"},
		{[]string{"expr", "x", "--query", "+fast_rnu"}, "did you mean fast_run?"},
		{[]string{"expr", "x", "--trace=canonicalise"}, "did you mean canonicalize?"},
		{[]string{"expr", "x", "--why-not=local_mul_cancel"}, "did you mean local_"},
		{[]string{"rule", "check", "(tnah x) => x"}, "did you mean tanh?"},
		{[]string{"passes", "--explain=canonicalise"}, "did you mean canonicalize?"},
		{[]string{"expr", "x", "--evla=random"}, `did you mean "--eval"?`},
	} {
		if r := nnopt(t, c.args...); !strings.Contains(r.stderr, c.wanted) {
			t.Errorf("%q says %s, not %s", c.args, r.stderr, c.wanted)
		}
	}
}

// TestNames: no text of the program names another one.
func TestNames(t *testing.T) {
	all := other("help").ok(t).stdout
	for line := range strings.Lines(all) {
		if name, ok := strings.CutPrefix(line, "  "); ok && len(strings.Fields(name)) > 0 {
			all += other("help", strings.Fields(name)[0]).ok(t).stdout
		}
	}
	all += other("info", file(t, "x", "nonsense\n")).stderr + other("copy", file(t, "y", "nonsense\n"), "-").stderr
	for _, line := range strings.Split(all, "\n") {
		if strings.Contains(line, "nnopt") {
			t.Error(line)
		}
	}
	contains(t, other("version").ok(t).stdout, "other ")
}

func ExampleConfig_Run() {
	greet := tool.Verb{Name: "greet", Synopsis: "say hello", Setup: func(*tool.Config, *flag.FlagSet) tool.Action {
		return func(_ context.Context, c *tool.Console, _ []string) error {
			c.Print("hello\n")
			return nil
		}
	}}
	cfg := standard.Program{Name: "other", Verbs: []tool.Verb{greet}}
	cfg.Config().Run(context.Background(), []string{"greet"}, nil, os.Stdout, os.Stderr)
	cfg.Config().Run(context.Background(), []string{"expr", "--query=none", "x + 0"}, nil, os.Stdout, os.Stderr)
	// Output:
	// hello
	// [add(x, 0.0)]
}
