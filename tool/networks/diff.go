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
	"github.com/nnopt/nnopt/tool/networks/internal/display"
)

const diffLegend = "# = same command, - gone, + new, m moved (to, from), * a component made by the optimizer, > merged into the * below"

// maxDiffCells bounds the table of the alignment.
const maxDiffCells = 1 << 26

// diffSide lists the commands of a computation. Components from number derived on
// were made by the optimizer.
func diffSide(c *computation.Computation, derived int) []display.Command {
	list := make([]display.Command, len(c.Commands))
	for i := range c.Commands {
		cmd := &c.Commands[i]
		d := display.Command{Type: cmd.Type}
		switch {
		case cmd.Type == computation.Propagate || cmd.Type.IsBackprop():
			d.What, d.Derived = cmd.Component(), int(cmd.Component()) >= derived
			out := cmd.Output()
			if cmd.Type.IsBackprop() {
				d.Type, out = computation.Backprop, cmd.InputDeriv()
			}
			d.Rows, d.Cols = c.Submatrices[out].NumRows, c.Submatrices[out].NumCols
		case cmd.Type == computation.AcceptInput || cmd.Type == computation.ProvideOutput:
			d.What = cmd.Node()
		}
		list[i] = d
	}
	return list
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
	rows := display.Align(a, b)
	for i := 0; i < len(rows); i++ {
		r := rows[i]
		if n := sizing(rows[i:], a); n >= maxSizing {
			fmt.Fprintf(w, "%s %c\n", pad(fmt.Sprintf("c%d … c%d  (allocate, free, set to a constant)", r.Left, r.Left+n-1), half), r.Mark)
			i += n - 1
			continue
		}
		var l, s, note string
		if r.Left >= 0 {
			l = fileio.Plain("c" + strconv.Itoa(r.Left) + "  " + left.Command(r.Left))
		}
		if r.Right >= 0 {
			s = fileio.Plain("c" + strconv.Itoa(r.Right) + "  " + right.Command(r.Right))
		}
		if r.Mark == display.Moved {
			note = "c" + strconv.Itoa(r.Other)
		}
		if r.Left < 0 {
			l = note
		} else if r.Right < 0 {
			s = note
		}
		line := strings.TrimRight(pad(l, half)+" "+string(r.Mark)+" "+cut(s, half), " ")
		if color {
			line = colored(r.Mark, line)
		}
		fmt.Fprintln(w, line)
	}
	return nil
}

// maxSizing is the number of gone allocations, frees and constants on one line.
const maxSizing = 4

// sizing counts the leading rows that are gone allocations, frees or constants.
func sizing(rows []display.Row, a []display.Command) int {
	n := 0
	for _, r := range rows {
		if r.Mark != display.Gone {
			break
		}
		if t := a[r.Left].Type; t != computation.AllocMatrix && t != computation.DeallocMatrix && t != computation.SetConst {
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
	codes := map[rune]string{display.Gone: "31", display.New: "32", display.Moved: "33", display.Fused: "36", display.Merged: "35"}
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
