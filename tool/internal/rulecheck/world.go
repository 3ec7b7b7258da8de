package rulecheck

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
)

// A World says how the values of a dialect are drawn, computed and compared. Types, Random, Evaluate
// and Compare are needed.
type World struct {
	// Rules are the names in rules.
	Rules pattern.Vocabulary
	// Types are those of the names in a pattern, the simplest first. Most names of an expression
	// have the same one.
	Types []fgraph.Type
	// Params returns parameters of the ops of a family, the simplest first.
	Params func(family string) []any
	// Random returns a value. special asks for one at the limits of what there is, of which rules
	// may promise less.
	Random func(t fgraph.Type, special bool, rng *rand.Rand) any
	// Values returns all values of a type if they are few. With it, rules of few variables are proved.
	Values func(t fgraph.Type) []any
	// Evaluate computes the outputs of a graph, which it owns. If the left side of a rule has an
	// error, anything may replace it.
	Evaluate func(ctx context.Context, g *fgraph.FunctionGraph, inputs []any) ([]any, error)
	// Compare returns Exact for values that are the same, and else the class of the difference: one
	// of those of this package or of the dialect. Every rule may differ by Rounding, and a rule that
	// has a tag of that name by any class but Wrong.
	Compare func(left, right any) Class
	// Smaller yields simpler values than one.
	Smaller func(t fgraph.Type, value any) iter.Seq[any]
	// Format prints a value; without it, fmt does.
	Format func(t fgraph.Type, value any) string
	// Conditions are guards that rules which are searched for may need, such as "uses(p, x)", where p stands for
	// any parameter and x for any variable.
	Conditions []string
	// Attach attaches features that rules ask for.
	Attach func(g *fgraph.FunctionGraph) error
	// Parse returns the outputs of the expressions that a case stands for.
	Parse func(c Case) [][]*fgraph.Variable
}

// Domain returns what the machine needs to know.
func (w World) Domain() Domain {
	return &worldDomain{World: w, families: make(map[string][]pattern.Operator)}
}

type worldDomain struct {
	World
	mu       sync.Mutex
	families map[string][]pattern.Operator
}

func (d *worldDomain) Vocabulary() pattern.Vocabulary { return d.Rules }

// Members are the ops of a family with the parameters of the world.
func (d *worldDomain) Members(family string) []pattern.Operator {
	d.mu.Lock()
	defer d.mu.Unlock()
	if list, ok := d.families[family]; ok {
		return list
	}
	var list []pattern.Operator
	if families, ok := d.Rules.(pattern.Families); ok && d.Params != nil {
		if f, ok := families.Family(family); ok && f.Make != nil {
			for _, p := range d.Params(family) {
				member := f
				member.Make = func(m pattern.Making) (*fgraph.Variable, error) {
					m.Param = p
					return f.Make(m)
				}
				list = append(list, member)
			}
		}
	}
	d.families[family] = list
	return list
}

// Beginnings are the types, one for all names.
func (d *worldDomain) Beginnings() (choices [][]int, times int) {
	for i := range d.Types {
		choices = append(choices, []int{i, 0})
	}
	return choices, 4
}

func (d *worldDomain) Names() []string { return nil }

func (d *worldDomain) Expressions(c Case) [][]*fgraph.Variable {
	if d.Parse == nil {
		return nil
	}
	return d.Parse(c)
}

func (d *worldDomain) Graph(outputs []*fgraph.Variable, others ...*fgraph.Variable) (*fgraph.FunctionGraph, error) {
	return d.graph(fgraph.InputsOf(slices.Concat(outputs, others)...), outputs)
}

func (d *worldDomain) graph(inputs, outputs []*fgraph.Variable) (*fgraph.FunctionGraph, error) {
	g, err := fgraph.NewCopy(inputs, outputs)
	if err == nil && d.Attach != nil {
		err = d.Attach(g)
	}
	return g, err
}

// A worldDrawer draws the inputs of one expression.
type worldDrawer struct {
	*worldDomain
	tape    *Tape
	like    int // the type of most
	scatter bool
}

func (d *worldDomain) Begin(t *Tape) Drawer {
	return &worldDrawer{worldDomain: d, tape: t, like: t.Draw(len(d.Types)), scatter: t.Draw(2) == 1}
}

// typ draws a type.
func (w *worldDrawer) typ() fgraph.Type {
	if w.scatter && w.tape.Draw(2) == 1 {
		return w.Types[w.tape.Draw(len(w.Types))]
	}
	return w.Types[w.like]
}

func (w *worldDrawer) Argument(name string, _ bool) (*fgraph.Variable, error) {
	return fgraph.NewInput(w.typ(), name), nil
}

func (w *worldDrawer) Literal(l pattern.Literal) (*fgraph.Variable, error) {
	v, err := w.Rules.Constant(l, fgraph.NewInput(w.typ(), ""))
	if err == nil && !w.Rules.Equal(l, v) {
		err = ErrUnfit
	}
	return v, err
}

func (w *worldDrawer) Indexes(pattern.Operator, int) int { return -1 }

func (w *worldDrawer) Rest(name string, _ bool) *fgraph.Variable {
	return fgraph.NewInput(w.typ(), name)
}

// How often an instance is computed, with values at the limits in every third run.
const worldRuns = 12

// A worldJudge compares values as they are.
type worldJudge struct {
	*worldDomain
	Trial
	tried int
	found map[Class]*worldFinding
	fault error // why a left side has no value
}

// A worldFinding is an example of a difference.
type worldFinding struct {
	in     *Instance
	text   string // in place of values
	values []any  // of the inputs of the graph
	again  func([]int) *Instance
}

func (d *worldDomain) Judge(t Trial) Judge {
	return &worldJudge{worldDomain: d, Trial: t, found: make(map[Class]*worldFinding)}
}

func (j *worldJudge) Fault(in *Instance, class Class, text string) {
	if j.found[class] == nil {
		j.found[class] = &worldFinding{in: in, text: text}
	}
}

func (j *worldJudge) Refuted() bool { return j.found[Wrong] != nil }

func (j *worldJudge) Compare(in *Instance, again func([]int) *Instance) bool {
	for run := range worldRuns {
		values := j.values(in, run%3 == 2)
		class, ok := j.class(in, values)
		if !ok {
			continue
		}
		j.tried++
		// Of several examples of a class, that of the fewest choices is kept: it is made smaller
		// only if it is shown.
		if old := j.found[class]; class != Exact && (old == nil || old.text == "" && len(in.choices) < len(old.in.choices)) {
			j.found[class] = &worldFinding{in: in, values: values, again: again}
		}
		if len(values) == 0 {
			break
		}
	}
	return j.Context.Err() == nil
}

// values draws values for the inputs of an instance.
func (j *worldJudge) values(in *Instance, special bool) []any {
	var values []any
	for _, v := range in.Graph.Inputs() {
		values = append(values, j.Random(v.Type(), special, j.Rand))
	}
	return values
}

// class says how the sides of an instance differ. ok is false if the left side has no value.
func (j *worldJudge) class(in *Instance, values []any) (class Class, ok bool) {
	left, err := j.compute(in, in.Left, values)
	if err != nil {
		j.fault = cmp.Or(j.fault, err)
		return "", false
	}
	right, err := j.compute(in, in.Right, values)
	if err != nil {
		return Wrong, true
	}
	worst := Exact
	for i := range left {
		if c := j.World.Compare(left[i], right[i]); rankOf(c) > rankOf(worst) {
			worst = c
		}
	}
	return worst, true
}

// rankOf orders classes by how much they ask of a reader. One that is not of this package comes
// before Wrong.
func rankOf(c Class) int {
	if i := slices.Index(classes, c); i >= 0 {
		return 2 * i
	}
	return 2*slices.Index(classes, Wrong) - 1
}

// compute computes variables of an instance. Each side has a graph of its own, since values may be
// overwritten in it.
func (j *worldJudge) compute(in *Instance, vars []*fgraph.Variable, values []any) (result []any, err error) {
	defer recovered(&err, errPanic)
	if err := j.Context.Err(); err != nil {
		return nil, err
	}
	g, err := j.graph(in.Graph.Inputs(), vars)
	if err != nil {
		return nil, err
	}
	result, err = j.Evaluate(j.Context, g, slices.Clone(values))
	if err == nil && len(result) != len(vars) {
		err = fmt.Errorf("%d values for %d outputs", len(result), len(vars))
	}
	return result, err
}

func (j *worldJudge) Report(trouble []string) Report {
	r := Report{Tried: j.tried, Class: Exact, Kept: true}
	// A left side without a value may become anything, but a rule with no other was not checked at all.
	if j.tried == 0 && j.fault != nil {
		trouble = append(trouble, fmt.Sprintf("what it replaces can't be computed: %v", j.fault))
	}
	worst, rank := Exact, -1
	for c := range j.found {
		k := rankOf(c)
		if c != Rounding && c != Wrong && c != Type {
			r.Tags = append(r.Tags, string(c))
		}
		if !j.permits(c) {
			k += 100
		}
		if k > rank || k == rank && c < worst {
			worst, rank = c, k
		}
	}
	slices.Sort(r.Tags)
	switch {
	case rank >= 100 && worst == Wrong || len(trouble) == 0 && rank >= 0:
		r.Class, r.Kept = worst, j.permits(worst)
		if worst != Rounding {
			f := *j.found[worst]
			if !j.Brief || worst != Wrong {
				r.Counterexample = j.shrink(worst, &f)
			}
			if worst == Wrong && f.text == "" {
				r.Wrong = make(map[string]any)
				for i, v := range f.in.Graph.Inputs() {
					r.Wrong[v.Name()] = f.values[i]
				}
			}
		}
	case len(trouble) > 0:
		r.Class, r.Kept, r.Counterexample = NeverFires, false, strings.Join(trouble, "; ")
	}
	return r
}

func (j *worldJudge) permits(c Class) bool {
	switch c {
	case Exact, Rounding:
		return true
	case NeverFires, Type, Wrong:
		return false
	}
	return slices.Contains(j.Tags, string(c))
}

// shrink returns the text of the smallest example that it finds.
func (j *worldJudge) shrink(class Class, f *worldFinding) string {
	if f.text != "" {
		return fmt.Sprintf("%s: %s", fgraph.Sprint(0, f.in.Graph.Outputs()...), f.text)
	}
	// First simpler expressions, with values that are drawn anew.
	Simplify(f.in, f.again, func(in *Instance) bool {
		values := j.example(class, in)
		if values != nil {
			f.in, f.values = in, values
		}
		return values != nil
	})
	// Then smaller values. The bound is for a dialect whose values get smaller for ever.
	for lap, again := 0, j.Smaller != nil; again && lap < 1000; lap++ {
		again = false
		for i, v := range f.in.Graph.Inputs() {
			for value := range j.Smaller(v.Type(), f.values[i]) {
				values := slices.Clone(f.values)
				values[i] = value
				if c, ok := j.class(f.in, values); ok && c == class {
					f.values, again = values, true
					break
				}
			}
		}
	}
	return j.text(f)
}

// example looks for values for which the sides differ in that class. It returns nil if it finds none.
func (j *worldJudge) example(class Class, in *Instance) []any {
	for run := range worldRuns {
		values := j.values(in, run%3 == 2)
		if c, ok := j.class(in, values); ok && c == class {
			return append([]any{}, values...)
		}
	}
	return nil
}

// text prints the inputs with values, and both sides.
func (j *worldJudge) text(f *worldFinding) string {
	format := func(t fgraph.Type, v any) string {
		if j.Format == nil {
			return fmt.Sprint(v)
		}
		return j.Format(t, v)
	}
	var parts []string
	used := fgraph.InputsOf(slices.Concat(f.in.Left, f.in.Right)...)
	for i, v := range f.in.Graph.Inputs() {
		if slices.Contains(used, v) {
			parts = append(parts, fmt.Sprintf("%s: %v = %s", v.Name(), v.Type(), format(v.Type(), f.values[i])))
		}
	}
	side := func(name string, vars []*fgraph.Variable) {
		values, err := j.compute(f.in, vars, f.values)
		for i, v := range vars {
			if err != nil {
				parts = append(parts, fmt.Sprintf("%s: %s fails: %v", name, fgraph.Text(0, v), err))
			} else {
				parts = append(parts, fmt.Sprintf("%s: %s = %s", name, fgraph.Text(0, v), format(v.Type(), values[i])))
			}
		}
	}
	side("left", f.in.Left)
	side("right", f.in.Right)
	return strings.Join(parts, "; ")
}
