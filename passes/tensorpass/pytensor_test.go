package tensorpass_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// A peerCase is a line of testdata/pytensor.tsv: an expression, and what PyTensor's tests of its
// rewrites demand of the graph that is left.
type peerCase struct {
	text, vars, test string
	most             int               // applies, -1 for any number
	has, lacks       *regexp.Regexp    // of the printed graph, or nil
	times            map[string]int    // how often something may be in it
	values           map[string]string // of inputs, as JSON: a literal, a shape or "pos"
	query            string
	unmet            bool
}

// readPeerCases reads the cases, and says of each whether its values are to be compared: as written, some
// expressions are not finite where PyTensor's test asks for a finite result.
func readPeerCases(t *testing.T) (cases []peerCase, compares []bool) {
	t.Helper()
	data, err := os.ReadFile("testdata/pytensor.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := append(strings.Split(strings.TrimRight(line, "\n"), "\t"), make([]string, 11)...)
		c := peerCase{text: f[0], vars: f[1], test: f[3], most: -1, query: unfused}
		if f[2] != "-" {
			if c.most, err = strconv.Atoi(f[2]); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		if f[4] != "" {
			c.has = regexp.MustCompile(f[4])
		}
		if f[5] != "" {
			c.lacks = regexp.MustCompile(f[5])
		}
		values := make(map[string]any)
		for text, into := range map[string]any{f[6]: &c.times, f[7]: &values} {
			if text != "" {
				if err := json.Unmarshal([]byte(text), into); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
			}
		}
		c.values = make(map[string]string)
		for name, v := range values {
			if s, ok := v.(string); ok {
				c.values[name] = s
				continue
			}
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			c.values[name] = "shape " + string(b)
		}
		var args []string
		if f[10] != "" {
			if err := json.Unmarshal([]byte(f[10]), &args); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			c.query = args[slices.Index(args, "--query")+1]
		}
		c.unmet = strings.Contains(f[9], "unmet")
		cases, compares = append(cases, c), append(compares, !strings.Contains(f[9], "finite"))
	}
	return cases, compares
}

// arguments returns the values of the inputs of a case. Sizes that are not given are 3.
func (c peerCase) arguments(t *testing.T, s *expr.Scope, seed uint64) []*array.Array {
	t.Helper()
	var args []*array.Array
	for k, v := range s.Inputs() {
		typ, how := tensor.TypeOf(v), c.values[v.Name()]
		shape := typ.Shape()
		for d := range shape {
			if shape[d] == tensor.Unknown {
				shape[d] = 3
			}
		}
		if list, ok := strings.CutPrefix(how, "shape "); ok {
			if err := json.Unmarshal([]byte(list), &shape); err != nil {
				t.Fatal(err)
			}
		} else if how != "" && !strings.HasPrefix(how, "pos") {
			out, err := expr.NewScope().Parse("[" + how + "]")
			if err != nil || len(out) != 1 {
				t.Fatalf("%s of %s: %v", how, c.text, err)
			}
			a := tensor.ConstantOf(out[0]).Cast(typ.DType())
			if a.Len() == 0 && a.NDim() < typ.NDim() {
				a = array.New(typ.DType(), make([]int, typ.NDim())...)
			}
			args = append(args, a)
			continue
		}
		a := array.New(typ.DType(), shape...)
		for i := range a.Len() {
			r := (uint64(i)*7919 + uint64(k)*104729 + seed*1299709) % 1000
			switch {
			case strings.HasPrefix(how, "pos") && typ.DType().IsFloat():
				a.SetFloat(i, 0.05+float64(r)/1100)
			case how == "pos":
				a.SetFloat(i, float64(1+r%3))
			case typ.DType().IsFloat():
				a.SetFloat(i, float64(r)/250-2)
			case typ.DType() == array.Bool:
				a.SetFloat(i, float64(r%2))
			default:
				a.SetFloat(i, float64(r%3))
			}
		}
		args = append(args, a)
	}
	return args
}

// TestPeerForms: the graphs have the forms that PyTensor's tests demand, and the values are those of the
// expressions as written. The forms that are not met are marked, and named if they are met after all.
func TestPeerForms(t *testing.T) {
	cases, compares := readPeerCases(t)
	opts := make(map[string]*optdb.Optimizer)
	met := 0
	for k, c := range cases {
		s := expr.NewScope()
		if err := s.Declare(c.vars); err != nil {
			t.Fatalf("%s: %v", c.vars, err)
		}
		out, err := s.Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if opts[c.query] == nil {
			opts[c.query] = passtest.Optimizer(t, c.query)
		}
		g, err := tensor.NewGraph(s.Inputs(), out)
		if err != nil {
			t.Fatal(err)
		}
		if err := opts[c.query].Rewrite(t.Context(), g, nil); err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		text := g.String()
		ok := (c.most < 0 || g.NumApplies() <= c.most) && (c.has == nil || c.has.MatchString(text)) && (c.lacks == nil || !c.lacks.MatchString(text))
		for what, most := range c.times {
			ok = ok && len(regexp.MustCompile(what).FindAllString(text, -1)) <= most
		}
		if ok {
			met++
		}
		if ok == c.unmet {
			t.Errorf("%s: %s became %s; met: %v, in testdata: %v", c.test, c.text, text, ok, !c.unmet)
		}
		if !compares[k] || !longtest.Enabled() && k%5 != 0 {
			continue
		}
		plain, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{Optimizer: opts[c.query]})
		if err != nil {
			t.Fatal(err)
		}
		args := c.arguments(t, s, uint64(k))
		if _, err := plain.Call(t.Context(), args...); err != nil {
			// An Assert fails, and does so when it is optimized.
			if _, too := f.Call(t.Context(), args...); too == nil || !strings.Contains(too.Error(), "assertion failed") {
				t.Errorf("%s: %s fails: %v; optimized: %v", c.test, c.text, err, too)
			}
			continue
		}
		most := 1e-12
		if slices.ContainsFunc(args, func(a *array.Array) bool { return a.DType() == array.Float32 }) {
			most = 1e-6 // float32s are added in another order before they become float64s
		}
		compareWithin(t, plain, f, args, true, most)
	}
	t.Logf("%d of %d forms", met, len(cases))
}
