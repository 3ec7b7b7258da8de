package display

import "github.com/nnopt/nnopt/nnet3/computation"

// Marks between the two sides of a diff.
const (
	Same   = '=' // the same command, perhaps on another matrix
	Gone   = '-'
	New    = '+'
	Moved  = 'm' // elsewhere on the other side
	Fused  = '*' // a run of a component made by the optimizer
	Merged = '>' // a run merged into the optimizer's run below
)

// A Row is a line of a diff: a command on both sides, or on one.
type Row struct {
	Left, Right int // numbers of commands, -1 for none
	Mark        rune
	Other       int // number on the other side, of a command that moved
}

// Command is the part of a command that the alignment compares.
type Command struct {
	Type    computation.CommandType
	What    int32 // the component or the node
	Derived bool
	// The size of the output of a run.
	Rows, Cols int32
}

// likeness scores the alignment of two commands: highest for runs of one component,
// 0 for unrelated commands.
func likeness(a, b Command) int32 {
	run := a.Type == computation.Propagate || a.Type == computation.Backprop
	switch {
	case a.Type != b.Type:
		return 0
	case a.Type == computation.AllocMatrix || a.Type == computation.DeallocMatrix || a.Type == computation.SetConst:
		return 0 // matrices have other numbers on the other side
	// A derived component has a number of its own. What it was fused from is recognized by the size
	// of the output: the columns are the same, and unless runs were merged the rows as well.
	case run && b.Derived && a.Cols != b.Cols:
		return 0
	case run && b.Derived && a.Rows != b.Rows:
		return 1
	case run && b.Derived:
		return 3
	case a.What != b.What:
		return 0
	case run || a.Type == computation.AcceptInput || a.Type == computation.ProvideOutput || a.Type == computation.NoOperationMarker:
		return 8
	}
	return 1
}

// Align returns the alignment with the highest score, with moves marked.
func Align(a, b []Command) []Row {
	n := len(b) + 1
	// This is the alignment of Needleman and Wunsch: best[i][j] is the highest score of the
	// commands from i and from j on, so it is filled from the end, and the alignment is then read
	// from the beginning. A score in place of equality is needed because commands have no names:
	// matrices are numbered anew by the optimizer, and components that it fuses replace several.
	best := make([]int32, (len(a)+1)*n) // [i][j]: of the commands from i and from j on
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			most := max(best[(i+1)*n+j], best[i*n+j+1])
			if l := likeness(a[i], b[j]); l > 0 {
				most = max(most, l+best[(i+1)*n+j+1])
			}
			best[i*n+j] = most
		}
	}
	var rows []Row
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		// Prefer commands of the left side: merged runs come before the run they merge into.
		case i < len(a) && (j == len(b) || best[i*n+j] == best[(i+1)*n+j]):
			rows = append(rows, Row{Left: i, Right: -1, Mark: Gone})
			i++
		case j < len(b) && (i == len(a) || best[i*n+j] == best[i*n+j+1]):
			rows = append(rows, Row{Left: -1, Right: j, Mark: New})
			j++
		default:
			mark := Same
			if b[j].Derived {
				mark = Fused
			}
			rows = append(rows, Row{Left: i, Right: j, Mark: mark})
			i, j = i+1, j+1
		}
	}
	markMoves(rows, a, b)
	markMerges(rows, a)
	return rows
}

// markMoves marks runs, inputs and outputs that are gone in one place and new in
// another.
func markMoves(rows []Row, a, b []Command) {
	// An alignment keeps the order, so a command that moved is gone in one place and new in
	// another. Runs, inputs and outputs are recognized by component or node, whose sizes may have
	// changed on the way. The first that is gone is paired with the first that is new.
	gone := map[Command][]int{} // rows
	for r := range rows {
		if rows[r].Mark == Gone && likeness(a[rows[r].Left], a[rows[r].Left]) > 1 {
			k := a[rows[r].Left]
			k.Rows, k.Cols = 0, 0
			gone[k] = append(gone[k], r)
		}
	}
	for r := range rows {
		if rows[r].Mark != New {
			continue
		}
		k := b[rows[r].Right]
		k.Rows, k.Cols = 0, 0
		if list := gone[k]; len(list) > 0 {
			from := list[0]
			gone[k] = list[1:]
			rows[r].Mark, rows[r].Other = Moved, rows[from].Left
			rows[from].Mark, rows[from].Other = Moved, rows[r].Right
		}
	}
}

// markMerges marks runs that are gone right above a run made by the optimizer.
func markMerges(rows []Row, a []Command) {
	// From the end, since a run merges into the next derived run below it. A run that is kept in
	// between ends the search: what is above it was merged into something else, or removed.
	into := computation.CommandType(-1)
	for r := len(rows) - 1; r >= 0; r-- {
		row := &rows[r]
		switch {
		case row.Mark == Fused:
			into = a[row.Left].Type
		case row.Left >= 0 && row.Mark == Gone && a[row.Left].Type == into:
			row.Mark = Merged
		case row.Mark == Same && (a[row.Left].Type == computation.Propagate || a[row.Left].Type == computation.Backprop):
			into = -1
		}
	}
}
