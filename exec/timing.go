package exec

import (
	"cmp"
	"slices"
	"time"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Timing sums up how long the commands of a program take. One computer at a time fills it
// (ComputerOptions.Timing). The zero value is empty, and belongs to the program of its first
// computer.
type Timing struct {
	program *Program
	took    []time.Duration // by command, like the others
	helped  []time.Duration
	waited  []time.Duration
	runs    []int64
}

// bind makes an empty timing one of program p. It reports whether the timing belongs to p then.
func (t *Timing) bind(p *Program) bool {
	if t.program == nil {
		n := len(p.instrs)
		t.program, t.took, t.runs = p, make([]time.Duration, n), make([]int64, n)
		t.helped, t.waited = make([]time.Duration, n), make([]time.Duration, n)
	}
	return t.program == p
}

func (t *Timing) add(command int, took time.Duration) {
	t.took[command] += took
	t.runs[command]++
}

// TimingRow is the cost of one command, or of a group of commands.
type TimingRow struct {
	// Name is the text of the command, or what the commands have in common.
	Name string `json:"name"`
	// Command is the number of the command, -1 for a group.
	Command int `json:"command"`
	// Commands is the number of commands, Runs how often they ran in all.
	Commands int   `json:"commands"`
	Runs     int64 `json:"runs"`
	// Time is the time of all runs.
	Time time.Duration `json:"nanoseconds"`
	// Helped is how long other threads worked meanwhile, all together, and Waited how long the
	// thread of the computer waited for them.
	Helped time.Duration `json:"helped_nanoseconds,omitempty"`
	Waited time.Duration `json:"waited_nanoseconds,omitempty"`
	// Bytes is the size of the operands in all runs: roughly the traffic between memory and
	// processor, without parameters.
	Bytes int64 `json:"bytes"`
	// Operations is the number of floating-point operations of matrix products in all runs. A
	// multiply-add counts as two.
	Operations int64 `json:"operations"`
}

// ByComponent returns a row for the forward and one for the backward pass of each component, and a
// row for each type of other commands, the most expensive first.
func (t *Timing) ByComponent() []TimingRow {
	info := t.program.info()
	return t.grouped(t.forComponents(func(c int32) string { return info.Components[c].Name }))
}

// ByComponentType is ByComponent with one row for all components of a type. The type of a derived
// component names its parts.
func (t *Timing) ByComponentType() []TimingRow {
	info := t.program.info()
	return t.grouped(t.forComponents(func(c int32) string { return info.Components[c].Type }))
}

// forComponents returns a name for instructions: that of the component, or else of the type.
func (t *Timing) forComponents(name func(component int32) string) func(in *instruction) string {
	return func(in *instruction) string {
		switch {
		case in.typ == computation.Propagate:
			return name(in.component)
		case in.typ.IsBackprop():
			return name(in.component) + " (backprop)"
		}
		return in.typ.String()
	}
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
		Helped: t.helped[i], Waited: t.waited[i], Bytes: t.runs[i] * t.program.operandBytes(i), Operations: t.runs[i] * t.program.operations(i),
	}
}

// grouped sums up the commands that ran by name, the most expensive first.
func (t *Timing) grouped(name func(in *instruction) string) []TimingRow {
	var rows []TimingRow
	byName := map[string]int{}
	for i := range t.took {
		if t.runs[i] == 0 {
			continue
		}
		r := t.row(name(&t.program.instrs[i]), i)
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
		sum.Helped += r.Helped
		sum.Waited += r.Waited
		sum.Bytes += r.Bytes
		sum.Operations += r.Operations
	}
	slices.SortStableFunc(rows, func(a, b TimingRow) int { return cmp.Compare(b.Time, a.Time) })
	return rows
}

// operandBytes returns the size of all operands of command i.
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

// Operations returns the number of floating-point operations of matrix products
// (component.Operations) if every command runs once.
func (p *Program) Operations() int64 {
	var sum int64
	for i := range p.instrs {
		sum += p.operations(i)
	}
	return sum
}

// operations returns the number of operations of command i.
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
	// Without a derivative of the input, its value tells how many rows it has. Without both,
	// nothing needs to know.
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
