package profile

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
)

//go:embed report.html
var reportHTML string

// WriteHTML writes the profile as an HTML page that needs no network and no script.
// It shows the time of each rewriter as a bar, the passes of every equilibrium with
// the number of nodes, the rules that fired, those that were tried in vain and
// those that were never tried, the counters, the execution table and the text
// report.
func (f *Function) WriteHTML(w io.Writer) error {
	t, err := template.New("report").Parse(reportHTML)
	if err != nil {
		return err
	}
	p, err := newPage(f)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

// A page is the data of report.html: figures as text, lengths in percent.
type page struct {
	Title      string
	Tiles      []tile
	Rewriters  []rewriterRow
	Equilibria []equilibriumView
	Fired      []ruleRow
	Vain       []ruleRow
	VainTime   string
	Untried    []string
	Execution  []executionRow
	Text       string
}

type tile struct{ Label, Value string }

type rewriterRow struct {
	Name, Class           string
	Pad                   string // on the left, in rem
	Left, Width           string // of the whole run
	Time, Share, Validate string
	Before, After         int
	Changed               int
	Counters              string
}

type equilibriumView struct {
	Path               string
	Start, End, Max    int
	Line               string // points of the node curve in a 0..100 by 0..30 box
	Local, Global      string
	Sort, Time, Passes string
	Rows               []passRow
}

type passRow struct {
	I, Applied, Nodes int
	Time, Width       string
	Global, Sort      string
	Rules             []RuleCount
}

type ruleRow struct {
	Name, Path, Time, Width             string
	Attempts, Applied, Refused, Created int
	duration                            time.Duration
}

type executionRow struct {
	Name, Time, PerCall, Bytes, Width string
	Calls, Applies                    int
}

func newPage(f *Function) (*page, error) {
	p := &page{Title: f.Message, Tiles: tiles(f)}
	if p.Title == "" {
		p.Title = "Optimizer profile"
	}
	var text strings.Builder
	if err := f.WriteText(&text); err != nil {
		return nil, err
	}
	p.Text = text.String()
	p.addRecords(f.Optimizer)
	p.addExecution(f.Execution)
	return p, nil
}

func tiles(f *Function) []tile {
	var list []tile
	add := func(label string, d time.Duration) {
		if d > 0 {
			list = append(list, tile{label, d.Round(d / 1000).String()})
		}
	}
	add("compile", f.CompileTime)
	for _, ph := range f.Phases {
		add(ph.Name, ph.Time)
	}
	add("optimize", f.optimizerTime())
	add("validate", f.validateTime())
	add("link", f.LinkTime)
	if r := f.Optimizer; r != nil {
		fired := 0
		for _, c := range r.All() {
			fired += c.Applied()
		}
		list = append(list,
			tile{"nodes", fmt.Sprintf("%d → %d", r.NodesBefore, r.NodesAfter)},
			tile{"rules fired", fmt.Sprint(fired)})
	}
	return list
}

func (p *page) addRecords(root *Record) {
	if root == nil {
		return
	}
	untried := make(map[string]bool)
	var names []string // from a child of the root down; of the root, its own
	root.walk(0, (*Record).distinct, func(depth int, r *Record) bool {
		names = append(names[:max(0, depth-1)], r.Name)
		path := strings.Join(names, " / ")
		p.Rewriters = append(p.Rewriters, rewriterRow{
			Name: r.Name, Class: r.Class, Pad: fmt.Sprintf("%.1frem", 1.1*float64(depth)),
			Left: length(r.Start-root.Start, root.Time), Width: length(r.Time, root.Time),
			Time: millis(r.Time), Share: fmt.Sprintf("%.1f", percent(r.Time, root.Time)), Validate: millis(r.Validate),
			Before: r.NodesBefore, After: r.NodesAfter, Changed: r.Changed, Counters: counterText(r.Counters),
		})
		if len(r.Passes) > 0 {
			p.Equilibria = append(p.Equilibria, newEquilibriumView(path, r))
		}
		p.addRules(path, r, untried)
		return true
	})
	rankRules(p.Fired)
	p.VainTime = millis(rankRules(p.Vain))
	slices.Sort(p.Untried)
}

// addRules adds the rules of a record to the lists of the page.
func (p *page) addRules(path string, r *Record, untried map[string]bool) {
	for i := range r.Rules {
		u := &r.Rules[i]
		row := ruleRow{u.Name, path, millis(u.Time), "", u.Attempts, u.Applied, u.Refused, u.Created, u.Time}
		switch {
		case u.Applied > 0:
			p.Fired = append(p.Fired, row)
		case u.Attempts > 0 || u.Time > 0:
			p.Vain = append(p.Vain, row)
		case !untried[u.Name]:
			untried[u.Name] = true
			p.Untried = append(p.Untried, u.Name)
		}
	}
}

// rankRules sorts rows by time, sets their bars relative to the first one and
// returns the time of all.
func rankRules(rows []ruleRow) (sum time.Duration) {
	slices.SortStableFunc(rows, func(a, b ruleRow) int { return cmp.Compare(b.duration, a.duration) })
	for i := range rows {
		rows[i].Width = length(rows[i].duration, rows[0].duration)
		sum += rows[i].duration
	}
	return sum
}

func newEquilibriumView(path string, r *Record) equilibriumView {
	v := equilibriumView{
		Path: path, Start: r.NodesBefore, End: r.NodesAfter, Max: r.NodesMax,
		Local: millis(r.localTime()), Global: millis(r.sumPasses(inGlobal)), Sort: millis(r.toposortTime()),
		Time: millis(r.passTime()), Passes: plural(len(r.Passes), "pass", "passes"),
	}
	var longest time.Duration
	for i := range r.Passes {
		longest = max(longest, r.Passes[i].Time)
	}
	heights := make([]int, 0, len(r.Passes)+1)
	for i := range r.Passes {
		q := &r.Passes[i]
		heights = append(heights, q.Nodes)
		v.Rows = append(v.Rows, passRow{
			I: i, Applied: q.Applied, Nodes: q.Nodes, Time: millis(q.Time), Width: length(q.Time, longest),
			Global: millis(q.Global), Sort: millis(q.Toposort), Rules: q.counts(),
		})
	}
	v.Line = curve(append(heights, r.NodesAfter))
	return v
}

// curve returns the points of a polyline in a box of 100 by 30 with zero at the
// bottom.
func curve(heights []int) string {
	top := max(1, slices.Max(heights))
	var b strings.Builder
	for i, h := range heights {
		x := 100 * float64(i) / float64(max(1, len(heights)-1))
		fmt.Fprintf(&b, "%.2f,%.2f ", x, 30-28*float64(h)/float64(top))
	}
	return strings.TrimSpace(b.String())
}

func (p *page) addExecution(ops []OpCost) {
	ops = costliest(ops)
	for _, o := range ops {
		p.Execution = append(p.Execution, executionRow{
			Name: o.Name, Time: millis(o.Time), PerCall: fmt.Sprintf("%.4f", o.Time.Seconds()*1e3/float64(max(1, o.Calls))),
			Bytes: fmt.Sprint(o.Bytes), Width: length(o.Time, ops[0].Time), Calls: o.Calls, Applies: o.Applies,
		})
	}
}

func counterText(counters []Counter) string {
	parts := make([]string, len(counters))
	for i, c := range counters {
		parts[i] = c.Name + " " + c.Text()
	}
	return strings.Join(parts, ", ")
}

// length returns a share as a CSS length of 0 to 100 percent.
func length(part, whole time.Duration) string {
	return fmt.Sprintf("%.3f%%", min(100, max(0, percent(part, whole))))
}

func millis(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()*1e3) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
