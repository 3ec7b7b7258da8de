package exec

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Timing sums up how long the commands of a program take. It is filled by one computer at a time (ComputerOptions.Timing);
// the sums of several can be put together with Merge.
type Timing struct {
	program *Program
	took    []time.Duration // by command
	runs    []int64         // by command: how often it ran
}

// NewTiming returns an empty timing for computers of the program.
func (p *Program) NewTiming() *Timing {
	return &Timing{program: p, took: make([]time.Duration, len(p.instrs)), runs: make([]int64, len(p.instrs))}
}

func (t *Timing) add(command int, took time.Duration) {
	t.took[command] += took
	t.runs[command]++
}

// Merge adds what another timing of the same program has. It panics if the program is another one.
func (t *Timing) Merge(other *Timing) {
	if t.program != other.program {
		panic("exec: timings of different programs")
	}
	for i := range t.took {
		t.took[i] += other.took[i]
		t.runs[i] += other.runs[i]
	}
}

// TimingRow is the cost of one command, or of several together.
type TimingRow struct {
	// Name is the text of the command, or what the commands have in common.
	Name string `json:"name"`
	// Command is the number of the command, -1 for several together.
	Command int `json:"command"`
	// Commands is how many commands the row is about, Runs how many times they ran in all.
	Commands int   `json:"commands"`
	Runs     int64 `json:"runs"`
	// Time is their time in all.
	Time time.Duration `json:"nanoseconds"`
	// Bytes is the size of the operands, once for every run: about what was moved between memory and processor, parameters
	// left out.
	Bytes int64 `json:"bytes"`
	// Operations are the floating-point operations of products of matrices, of all runs; a multiply-add counts two.
	Operations int64 `json:"operations"`
}

// ByCommand returns a row per command that ran, in the order of the commands.
func (t *Timing) ByCommand() []TimingRow {
	var rows []TimingRow
	for i := range t.took {
		if t.runs[i] > 0 {
			rows = append(rows, t.row(t.program.commandError(i, nil).Text, i))
		}
	}
	return rows
}

// ByType returns a row per type of command, the most expensive first.
func (t *Timing) ByType() []TimingRow {
	return t.grouped(func(i int) string { return t.program.instrs[i].typ.String() })
}

// ByComponent returns a row per component for its forward and one for its backward pass, and a row per type of command for
// the other commands, the most expensive first.
func (t *Timing) ByComponent() []TimingRow {
	return t.grouped(func(i int) string {
		in := &t.program.instrs[i]
		switch {
		case in.typ == computation.Propagate:
			return t.program.info.Components[in.component].Name
		case in.typ.IsBackprop():
			return t.program.info.Components[in.component].Name + " (backprop)"
		}
		return in.typ.String()
	})
}

// ByComponentType is ByComponent with the components of a type together. The type of a derived component names its parts.
func (t *Timing) ByComponentType() []TimingRow {
	return t.grouped(func(i int) string {
		in := &t.program.instrs[i]
		switch {
		case in.typ == computation.Propagate:
			return t.program.info.Components[in.component].Type
		case in.typ.IsBackprop():
			return t.program.info.Components[in.component].Type + " (backprop)"
		}
		return in.typ.String()
	})
}

// Total returns the time of all commands.
func (t *Timing) Total() time.Duration {
	var total time.Duration
	for _, d := range t.took {
		total += d
	}
	return total
}

// row returns the row of command i.
func (t *Timing) row(name string, i int) TimingRow {
	return TimingRow{
		Name: name, Command: i, Commands: 1, Runs: t.runs[i], Time: t.took[i],
		Bytes: t.runs[i] * t.program.operandBytes(i), Operations: t.runs[i] * t.program.operations(i),
	}
}

// grouped sums up the commands that ran by what name says, the most expensive first.
func (t *Timing) grouped(name func(i int) string) []TimingRow {
	var rows []TimingRow
	byName := map[string]int{}
	for i := range t.took {
		if t.runs[i] == 0 {
			continue
		}
		r := t.row(name(i), i)
		at, ok := byName[r.Name]
		if !ok {
			byName[r.Name] = len(rows)
			r.Command = -1
			rows = append(rows, r)
			continue
		}
		sum := &rows[at]
		sum.Commands++
		sum.Runs += r.Runs
		sum.Time += r.Time
		sum.Bytes += r.Bytes
		sum.Operations += r.Operations
	}
	slices.SortStableFunc(rows, func(a, b TimingRow) int { return cmp.Compare(b.Time, a.Time) })
	return rows
}

// operandBytes is the size of all operands of command i together.
func (p *Program) operandBytes(i int) int64 {
	in := &p.instrs[i]
	switch in.typ {
	case computation.AllocMatrix, computation.DeallocMatrix, computation.SwapMatrix, computation.GotoLabel:
		return 0
	}
	var elements int64
	for _, s := range [...]int32{in.dst, in.src, in.x, in.y} {
		elements += int64(p.views[s].rows) * int64(p.views[s].cols)
	}
	elements += int64(len(in.places)) * int64(p.views[in.dst].cols)
	return 4 * elements
}

// Operations returns the number of floating-point operations of products of matrices (component.Operations) in all commands,
// each of them once.
func (p *Program) Operations() int64 {
	var sum int64
	for i := range p.instrs {
		sum += p.operations(i)
	}
	return sum
}

// operations is the number of operations of command i.
func (p *Program) operations(i int) int64 {
	in := &p.instrs[i]
	if in.typ != computation.Propagate && !in.typ.IsBackprop() {
		return 0
	}
	c, ok := p.components[in.component].(component.OperationCounter)
	if !ok {
		return 0
	}
	if in.typ == computation.Propagate {
		return c.Operations(in.pre, p.views[in.src].rows, p.views[in.dst].rows).Forward
	}
	// Where the derivative of the input is not wanted, the value says how many rows the input has, or nothing needs to.
	var sum int64
	ops := c.Operations(in.pre, max(p.views[in.dst].rows, p.views[in.x].rows), p.views[in.src].rows)
	if in.dst != 0 {
		sum += ops.InputDeriv
	}
	if in.typ == computation.Backprop && p.computation.NeedModelDerivative && p.components[in.component].Properties().Has(component.Updatable) {
		sum += ops.Update
	}
	return sum
}

// WriteTable writes rows as a table for people.
func WriteTable(w io.Writer, rows []TimingRow) error {
	var total time.Duration
	for _, r := range rows {
		total += r.Time
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "time\t%\truns\tcommands\tMB\tGFLOP/s\t  name")
	for _, r := range rows {
		rate := "-"
		if r.Operations > 0 {
			rate = fmt.Sprintf("%.1f", float64(r.Operations)/float64(max(r.Time, 1)))
		}
		fmt.Fprintf(t, "%v\t%.1f\t%d\t%d\t%.2f\t%s\t  %s\n", r.Time.Round(time.Microsecond), 100*float64(r.Time)/float64(max(total, 1)),
			r.Runs, r.Commands, float64(r.Bytes)/1e6, rate, r.Name)
	}
	return t.Flush()
}
