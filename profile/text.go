package profile

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rulesPerPass is how many rules the line of a pass shows before "...".
const rulesPerPass = 5

// WriteText writes the function profile, the optimizer profile and the execution
// table. It returns the error of the writer.
func (f *Function) WriteText(w io.Writer) error {
	t := &textWriter{Writer: bufio.NewWriter(w)}
	t.function(f)
	if f.Optimizer != nil {
		t.line("")
		t.optimizer(f.Optimizer)
	}
	if len(f.Execution) > 0 {
		t.line("")
		t.execution(f.Execution)
	}
	return t.Flush()
}

// WriteExecution writes the execution table alone.
func (f *Function) WriteExecution(w io.Writer) error {
	t := &textWriter{Writer: bufio.NewWriter(w)}
	t.execution(f.Execution)
	return t.Flush()
}

// WriteText writes the optimizer profile in Theano's layout: for each rewriter a
// line and a block, indented by four columns per level. The rewriters of a sequence
// are sorted by time; the index in their line is the order in which they ran. Where
// Theano prints seconds with three digits, a run shorter than a tenth of a second
// has six. WriteText returns the error of the writer.
func (r *Record) WriteText(w io.Writer) error {
	t := &textWriter{Writer: bufio.NewWriter(w)}
	t.optimizer(r)
	return t.Flush()
}

// textWriter leaves write errors to the Flush of its buffer.
type textWriter struct {
	*bufio.Writer
	digits int // of seconds, after the point
}

// sec formats seconds with three digits, as Theano does, or with six if the whole
// optimizer took less than a tenth of a second: three would be zeros.
func (t *textWriter) sec(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', t.digits, 64) + "s"
}

func (t *textWriter) line(format string, args ...any) {
	fmt.Fprintf(t, format, args...)
	t.WriteByte('\n')
}

func (t *textWriter) function(f *Function) {
	t.line("Function profiling")
	t.line("==================")
	if f.Message != "" {
		t.line("  Message: %s", f.Message)
	}
	t.line("  Time in %d calls to Function.__call__: %es", f.Calls, f.CallTime.Seconds())
	if f.PeakBytes > 0 {
		t.line("  Peak bytes of a call: %d", f.PeakBytes)
	}
	t.line("  Total compile time: %es", f.CompileTime.Seconds())
	t.line("    Number of Apply nodes: %d", f.Applies)
	for _, p := range f.Phases {
		t.line("    %s time: %es", p.Name, p.Time.Seconds())
	}
	t.line("    Optimizer time: %es", f.optimizerTime().Seconds())
	t.line("       validate time: %es", f.validateTime().Seconds())
	t.line("    Linker time: %es", f.LinkTime.Seconds())
}

func (t *textWriter) optimizer(root *Record) {
	t.line("Optimizer Profile")
	t.line("-----------------")
	if root == nil {
		return
	}
	if t.digits = 3; root.Time < 100*time.Millisecond {
		t.digits = 6
	}
	byCost := func(r *Record) []*Record {
		return slices.SortedStableFunc(slices.Values(r.distinct()), func(a, b *Record) int { return cmp.Compare(b.Time, a.Time) })
	}
	root.walk(0, byCost, func(level int, r *Record) bool {
		if level > 0 {
			t.line("%s   %.6fs - (%s, %s, %d) - %s", indent(level-1),
				r.Time.Seconds(), quote(r.Name), quote(r.Class), r.Index, t.sec(r.Validate))
		}
		t.block(r, level)
		return true
	})
}

// block writes the block of a rewriter, without its children.
func (t *textWriter) block(r *Record, level int) {
	if r.Saturation != nil {
		t.saturation(r, level)
		return
	}
	switch r.Class {
	case ClassSequence:
		t.sequence(r, level)
	case ClassEquilibrium:
		t.equilibrium(r, level)
	case ClassTopo, ClassOpKey:
		t.topo(r, level)
	case ClassMerge:
		t.merge(r, level)
	default:
		t.counters(r, level)
	}
}

func (t *textWriter) sequence(r *Record, level int) {
	in := indent(level)
	t.line("%s SeqOptimizer %s %s  time %s for %d/%d nodes before/after optimization",
		in, in, r.Name, t.sec(r.Time), r.NodesBefore, r.NodesAfter)
	t.line("%s   %s for fgraph.validate()", in, t.sec(r.Validate))
	t.line("%s   %s for callback", in, t.sec(r.Callback))
	if r.Prepare > 0 {
		t.line("%s   %s for making rules, on first use", in, t.sec(r.Prepare))
	}
	t.extra(r, in+"  ")
	if level == 0 {
		t.line("   time      - (name, class, index) - validate time")
	}
}

func (t *textWriter) equilibrium(r *Record, level int) {
	in := indent(level)
	t.line("%s EquilibriumOptimizer %s %s", in, in, r.Name)
	in += "   "
	t.line("%stime %s for %d passes", in, t.sec(r.passTime()), len(r.Passes))
	t.line("%snb nodes (start, end,  max) %d %d %d", in, r.NodesBefore, r.NodesAfter, r.NodesMax)
	t.line("%stime io_toposort %s", in, t.sec(r.toposortTime()))
	t.line("%stime in local optimizers %s", in, t.sec(r.localTime()))
	t.line("%stime in global optimizers %s", in, t.sec(r.sumPasses(inGlobal)))
	if r.Prepare > 0 {
		t.line("%stime making rules, on first use %s", in, t.sec(r.Prepare))
	}
	t.extra(r, in[1:])
	for i := range r.Passes {
		t.pass(i, &r.Passes[i], in)
	}
	t.rules(r, in)
	if len(r.Children) > 0 {
		t.line("%sGlobal, final and clean up optimizers", in)
	}
}

func (t *textWriter) pass(i int, p *Pass, in string) {
	fmt.Fprintf(t, "%s%2d - %s %d (%s in global opts, %s io_toposort) - %d nodes -",
		in, i, t.sec(p.Time), p.Applied, t.sec(p.Global), t.sec(p.Toposort), p.Nodes)
	for j, c := range p.counts() {
		if j == rulesPerPass {
			t.WriteString(" ...")
			break
		}
		fmt.Fprintf(t, " (%s, %d)", quote(c.Name), c.Count)
	}
	t.WriteByte('\n')
}

// counts returns the rules that fired in the pass, most often first.
func (p *Pass) counts() []RuleCount {
	return slices.SortedStableFunc(slices.Values(p.Rules), func(a, b RuleCount) int { return cmp.Compare(b.Count, a.Count) })
}

// rules writes the rules of an equilibrium that fired, and then the others.
func (t *textWriter) rules(r *Record, in string) {
	used, unused := r.RulesByCost()
	if len(used) > 0 {
		t.line("%stimes - times applied - nb node created - name:", in)
		for _, u := range used {
			t.line("%s%s - %d - %d - %s", in, t.sec(u.Time), u.Applied, u.Created, u.Name)
			t.ruleCounters(&u, in)
		}
	}
	var lost time.Duration
	for _, u := range unused {
		lost += u.Time
	}
	if lost == 0 {
		return
	}
	// The wording, slip included, is Theano's.
	t.line("%s%s - in %d optimization that where not used (display only those with a runtime > 0)",
		in, t.sec(lost), len(unused))
	for _, u := range unused {
		if u.Time > 0 {
			t.line("%s  %s - %s", in, t.sec(u.Time), u.Name)
			t.ruleCounters(&u, in+"  ")
		}
	}
}

// ruleCounters writes the counters of a rule below its line.
func (t *textWriter) ruleCounters(u *RuleRecord, in string) {
	for _, c := range u.Counters {
		t.line("%s  %s %s", in, c.Name, c.Text())
	}
}

func (t *textWriter) topo(r *Record, level int) {
	in := indent(level)
	t.line("%s %s", in, r.Class)
	in += "   "
	t.line("%snb_node (start, end, changed) (%d, %d, %d)", in, r.NodesBefore, r.NodesAfter, r.Changed)
	t.line("%sinit io_toposort %s", in, r.seconds("init io_toposort", r.Toposort))
	t.line("%sloop time %s", in, r.seconds("loop time", r.Loop))
	t.line("%scallback_time %s", in, r.seconds("callback_time", r.Callback))
	t.extra(r, in[1:], "init io_toposort", "loop time", "callback_time")
	if r.Prepare > 0 {
		t.line("%stime making rules, on first use %s", in, pythonFloat(r.Prepare.Seconds()))
	}
	// A walk with one rule that it could not try says all in the lines above.
	if len(r.Rules) > 1 || len(r.Rules) == 1 && r.Rules[0].Attempts > 0 {
		t.group(r, in)
	}
}

// group writes the rules of a walk.
func (t *textWriter) group(r *Record, in string) {
	used, unused := r.RulesByCost()
	t.line("%stime taken - times applied - times tried - name - node_created", in)
	for _, u := range append(used, unused...) {
		t.line("%s%s - %d - %d - %s - %d", in, t.sec(u.Time), u.Applied, u.Attempts, u.Name, u.Created)
		t.ruleCounters(&u, in)
	}
}

func (t *textWriter) merge(r *Record, level int) {
	in := indent(level)
	count := func(name string) int {
		v, _ := r.Counter(name)
		return int(v)
	}
	replace, _ := r.Counter("replace_time")
	t.line("%s %s", in, r.Class)
	t.line("%s   nb fail=%5d merged=%5d constant=%5d", in, count("nb_fail"), count("nb_merged"), count("nb_constant"))
	t.line("%s   time replace=%.6f validate=%.6f callback=%.6f", in, replace, r.Validate.Seconds(), r.Callback.Seconds())
	t.extra(r, in+"  ", "nb_fail", "nb_merged", "nb_constant", "replace_time")
}

// counters writes the block of a rewriter that has counters only, if it has any.
func (t *textWriter) counters(r *Record, level int) {
	if len(r.Counters) == 0 {
		return
	}
	t.line("%s %s", indent(level), r.Class)
	t.extra(r, indent(level)+" ")
}

// extra writes the counters that the layout of the class does not include.
func (t *textWriter) extra(r *Record, in string, known ...string) {
	for _, c := range r.Counters {
		if !slices.Contains(known, c.Name) {
			t.line("%s %s %s", in, c.Name, c.Text())
		}
	}
}

func (t *textWriter) execution(ops []OpCost) {
	t.line("Execution")
	t.line("---------")
	ops = costliest(ops)
	var total, helped, sum time.Duration
	for _, o := range ops {
		total += o.Time
		helped += o.Helped
	}
	// What one thread did has two columns less.
	threads := func(string, ...any) string { return "" }
	if helped > 0 {
		threads = fmt.Sprintf
	}
	t.line("  <%% time> <sum %%> <time> <time per call> %s<bytes> <#call> <#apply> <name>", threads("<cores> <waited> "))
	for _, o := range ops {
		sum += o.Time
		t.line("  %5.1f%% %6.1f%% %9.3fs %12.2es %s%14d %8d %6d  %s", percent(o.Time, total), percent(sum, total),
			o.Time.Seconds(), o.Time.Seconds()/math.Max(1, float64(o.Calls)), threads("%6.2f %5.1f%% ", o.cores(), percent(o.Waited, o.Time)),
			o.Bytes, o.Calls, o.Applies, o.Name)
	}
}

// costliest returns the ops sorted by time, most first.
func costliest(ops []OpCost) []OpCost {
	return slices.SortedStableFunc(slices.Values(ops), func(a, b OpCost) int { return cmp.Compare(b.Time, a.Time) })
}

// Text formats the value as Theano's blocks do: a count without a point, seconds
// with up to twelve digits and always with a point or an exponent, and with the
// unit if there is another one.
func (c Counter) Text() string {
	if c.Unit == "s" {
		return pythonFloat(c.Value)
	}
	text := strconv.FormatFloat(c.Value, 'g', 12, 64)
	// From 2^53 on not every integer is a float64, so that further digits would be made up.
	if c.Value == math.Trunc(c.Value) && math.Abs(c.Value) < 1<<53 {
		text = strconv.FormatFloat(c.Value, 'f', 0, 64)
	}
	if c.Unit != "" {
		text += " " + c.Unit
	}
	return text
}

// RulesByCost returns the rules that fired and the rules that did not, both sorted
// by time, most first.
func (r *Record) RulesByCost() (used, unused []RuleRecord) {
	for _, rule := range r.Rules {
		if rule.Applied > 0 {
			used = append(used, rule)
		} else {
			unused = append(unused, rule)
		}
	}
	byTime := func(a, b RuleRecord) int { return cmp.Compare(b.Time, a.Time) }
	slices.SortStableFunc(used, byTime)
	slices.SortStableFunc(unused, byTime)
	return used, unused
}

// passTime returns the time in passes or, without passes, the time of the run.
func (r *Record) passTime() time.Duration {
	if len(r.Passes) == 0 {
		return r.Time
	}
	return r.sumPasses(inPass)
}

func (r *Record) toposortTime() time.Duration { return cmp.Or(r.Toposort, r.sumPasses(inSort)) }

// seconds formats the counter of that name, or d if there is none.
func (r *Record) seconds(name string, d time.Duration) string {
	if v, ok := r.Counter(name); ok {
		return pythonFloat(v)
	}
	return pythonFloat(d.Seconds())
}

func indent(level int) string { return strings.Repeat("    ", level) }

func percent(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// pythonFloat formats a float as str() does in Python 2, which Theano used: with
// twelve significant digits, and an exponent below 1e-4 and from 1e12 on.
func pythonFloat(v float64) string {
	text := strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', 12, 64), "+"))
	if !strings.ContainsAny(text, ".en") { // nor an exponent, inf or nan
		text += ".0"
	}
	return text
}

// quote writes a name as Python shows a string in a tuple.
func quote(s string) string {
	q := strconv.Quote(s)
	q = q[1 : len(q)-1]
	q = strings.ReplaceAll(q, `\"`, `"`)
	// Python takes double quotes only if that saves it from escaping.
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		return `"` + q + `"`
	}
	return "'" + strings.ReplaceAll(q, "'", `\'`) + "'"
}
