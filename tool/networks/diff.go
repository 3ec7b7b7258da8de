package networks

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Marks between the two sides of a diff.
const (
	markSame   = '=' // the same command, perhaps on another matrix
	markGone   = '-'
	markNew    = '+'
	markMoved  = 'm' // elsewhere on the other side
	markFused  = '*' // a run of a component made by the optimizer
	markMerged = '>' // a run merged into the optimizer's run below
)

const diffLegend = "# = same command, - gone, + new, m moved (to, from), * a component made by the optimizer, > merged into the * below"

// maxDiffCells bounds the table of the alignment.
const maxDiffCells = 1 << 26

// A diffRow is a line of a diff: a command on both sides, or on one.
type diffRow struct {
	left, right int // numbers of commands, -1 for none
	mark        rune
	other       int // number on the other side, of a command that moved
}

// diffCommand is the part of a command that the alignment compares.
type diffCommand struct {
	typ     computation.CommandType
	what    int32 // the component or the node
	derived bool
	// The size of the output of a run.
	rows, cols int32
}

// diffSide lists the commands of a computation. Components from number derived on
// were made by the optimizer.
func diffSide(c *computation.Computation, derived int) []diffCommand {
	list := make([]diffCommand, len(c.Commands))
	for i := range c.Commands {
		cmd := &c.Commands[i]
		d := diffCommand{typ: cmd.Type}
		switch {
		case cmd.Type == computation.Propagate || cmd.Type.IsBackprop():
			d.what, d.derived = cmd.Component(), int(cmd.Component()) >= derived
			out := cmd.Output()
			if cmd.Type.IsBackprop() {
				d.typ, out = computation.Backprop, cmd.InputDeriv()
			}
			d.rows, d.cols = c.Submatrices[out].NumRows, c.Submatrices[out].NumCols
		case cmd.Type == computation.AcceptInput || cmd.Type == computation.ProvideOutput:
			d.what = cmd.Node()
		}
		list[i] = d
	}
	return list
}

// likeness scores the alignment of two commands: highest for runs of one component,
// 0 for unrelated commands.
func likeness(a, b diffCommand) int32 {
	run := a.typ == computation.Propagate || a.typ == computation.Backprop
	switch {
	case a.typ != b.typ:
		return 0
	case a.typ == computation.AllocMatrix || a.typ == computation.DeallocMatrix || a.typ == computation.SetConst:
		return 0 // matrices have other numbers on the other side
	// A derived component has a number of its own. What it was fused from is recognized by the size
	// of the output: the columns are the same, and unless runs were merged the rows as well.
	case run && b.derived && a.cols != b.cols:
		return 0
	case run && b.derived && a.rows != b.rows:
		return 1
	case run && b.derived:
		return 3
	case a.what != b.what:
		return 0
	case run || a.typ == computation.AcceptInput || a.typ == computation.ProvideOutput || a.typ == computation.NoOperationMarker:
		return 8
	}
	return 1
}

// alignCommands returns the alignment with the highest score, with moves marked.
func alignCommands(a, b []diffCommand) []diffRow {
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
	var rows []diffRow
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		// Prefer commands of the left side: merged runs come before the run they merge into.
		case i < len(a) && (j == len(b) || best[i*n+j] == best[(i+1)*n+j]):
			rows = append(rows, diffRow{left: i, right: -1, mark: markGone})
			i++
		case j < len(b) && (i == len(a) || best[i*n+j] == best[i*n+j+1]):
			rows = append(rows, diffRow{left: -1, right: j, mark: markNew})
			j++
		default:
			mark := markSame
			if b[j].derived {
				mark = markFused
			}
			rows = append(rows, diffRow{left: i, right: j, mark: mark})
			i, j = i+1, j+1
		}
	}
	markMoves(rows, a, b)
	markMerges(rows, a)
	return rows
}

// markMoves marks runs, inputs and outputs that are gone in one place and new in
// another.
func markMoves(rows []diffRow, a, b []diffCommand) {
	// An alignment keeps the order, so a command that moved is gone in one place and new in
	// another. Runs, inputs and outputs are recognized by component or node, whose sizes may have
	// changed on the way. The first that is gone is paired with the first that is new.
	gone := map[diffCommand][]int{} // rows
	for r := range rows {
		if rows[r].mark == markGone && likeness(a[rows[r].left], a[rows[r].left]) > 1 {
			k := a[rows[r].left]
			k.rows, k.cols = 0, 0
			gone[k] = append(gone[k], r)
		}
	}
	for r := range rows {
		if rows[r].mark != markNew {
			continue
		}
		k := b[rows[r].right]
		k.rows, k.cols = 0, 0
		if list := gone[k]; len(list) > 0 {
			from := list[0]
			gone[k] = list[1:]
			rows[r].mark, rows[r].other = markMoved, rows[from].left
			rows[from].mark, rows[from].other = markMoved, rows[r].right
		}
	}
}

// markMerges marks runs that are gone right above a run made by the optimizer.
func markMerges(rows []diffRow, a []diffCommand) {
	// From the end, since a run merges into the next derived run below it. A run that is kept in
	// between ends the search: what is above it was merged into something else, or removed.
	into := computation.CommandType(-1)
	for r := len(rows) - 1; r >= 0; r-- {
		row := &rows[r]
		switch {
		case row.mark == markFused:
			into = a[row.left].typ
		case row.left >= 0 && row.mark == markGone && a[row.left].typ == into:
			row.mark = markMerged
		case row.mark == markSame && (a[row.left].typ == computation.Propagate || a[row.left].typ == computation.Backprop):
			into = -1
		}
	}
}

// widestSide bounds the characters of a side. Few commands are as long.
const widestSide = 4000

// printDiff prints a computation as compiled and as optimized side by side, in lines
// of the given width.
func printDiff(w io.Writer, p *pipeline.Plan, width int, color bool) error {
	a, b := diffSide(p.Compiled, len(p.Net.Components)), diffSide(p.Optimized, len(p.Net.Components))
	if (len(a)+1)*(len(b)+1) > maxDiffCells {
		return fmt.Errorf("can't align %d and %d commands; --both prints them one after the other", len(a), len(b))
	}
	left, right := computation.NewPrinter(p.Compiled, p.Info(p.Compiled)), computation.NewPrinter(p.Optimized, p.Info(p.Optimized))
	left.MaxRuns, right.MaxRuns = 4, 4
	half := min(max(20, (width-3)/2), widestSide)
	fmt.Fprintln(w, diffLegend)
	rows := alignCommands(a, b)
	for i := 0; i < len(rows); i++ {
		r := rows[i]
		if n := sizing(rows[i:], a); n >= maxSizing {
			fmt.Fprintf(w, "%s %c\n", pad(fmt.Sprintf("c%d … c%d  (allocate, free, set to a constant)", r.left, r.left+n-1), half), r.mark)
			i += n - 1
			continue
		}
		var l, s, note string
		if r.left >= 0 {
			l = fileio.Plain("c" + strconv.Itoa(r.left) + "  " + left.Command(r.left))
		}
		if r.right >= 0 {
			s = fileio.Plain("c" + strconv.Itoa(r.right) + "  " + right.Command(r.right))
		}
		if r.mark == markMoved {
			note = "c" + strconv.Itoa(r.other)
		}
		if r.left < 0 {
			l = note
		} else if r.right < 0 {
			s = note
		}
		line := strings.TrimRight(pad(l, half)+" "+string(r.mark)+" "+cut(s, half), " ")
		if color {
			line = colored(r.mark, line)
		}
		fmt.Fprintln(w, line)
	}
	return nil
}

// maxSizing is the number of gone allocations, frees and constants on one line.
const maxSizing = 4

// sizing counts the leading rows that are gone allocations, frees or constants.
func sizing(rows []diffRow, a []diffCommand) int {
	n := 0
	for _, r := range rows {
		if r.mark != markGone {
			break
		}
		if t := a[r.left].typ; t != computation.AllocMatrix && t != computation.DeallocMatrix && t != computation.SetConst {
			break
		}
		n++
	}
	return n
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// pad fills or cuts a text to n characters.
func pad(s string, n int) string {
	s = cut(s, n)
	return s + strings.Repeat(" ", n-utf8.RuneCountInString(s))
}

// colored colors a line by its mark.
func colored(mark rune, line string) string {
	codes := map[rune]string{markGone: "31", markNew: "32", markMoved: "33", markFused: "36", markMerged: "35"}
	if code, ok := codes[mark]; ok {
		return "\x1b[" + code + "m" + line + "\x1b[m"
	}
	return line
}

// lineWidth returns the characters in a line: the environment variable COLUMNS, or
// else 160.
func lineWidth() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return 160
}
