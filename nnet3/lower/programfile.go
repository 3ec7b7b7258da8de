package lower

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/index"
)

const programSection = "program"

// GraphSection returns the program as a section of a graph file: what its inputs and outputs are,
// in order, and what its rows stand for if that is known.
func (p *Program) GraphSection(func(*fgraph.Variable) string) (name string, lines []string, err error) {
	head := fmt.Sprintf("commands=%d marker=%d largest=%d", p.numCommands, p.Marker, p.largestOp)
	for _, f := range p.flags() {
		if *f.flag {
			head += " " + f.name
		}
	}
	lines = append(lines, head)
	for i, port := range slices.Concat(p.Inputs, p.Outputs) {
		side := "input"
		if i >= len(p.Inputs) {
			side = "output"
		}
		lines = append(lines, side+" "+port.text())
	}
	elements := 0
	for i := range p.rows {
		r := &p.rows[i]
		lines = append(lines, r.text())
		elements += len(r.rows[0].Cindexes) + len(r.rows[1].Cindexes)
	}
	if elements > maxElements {
		err = fmt.Errorf("%w: the program has %d rows in total, more than %d", errText, elements, maxElements)
	}
	return programSection, lines, err
}

type namedFlag struct {
	name string
	flag *bool
}

// flags returns the facts about the program that its first line names if they hold.
func (p *Program) flags() [4]namedFlag {
	return [...]namedFlag{{"derivative", &p.NeedModelDerivative}, {"rows", &p.hasRows}, {"loop", &p.loops}, {"pause", &p.paused}}
}

func (p Port) text() string {
	what := "node=" + strconv.Itoa(int(p.Node))
	switch {
	case !p.IsMatrix():
		what = "state=" + strconv.Itoa(int(p.Component))
	case p.Carried > 0:
		what = "carried=" + strconv.Itoa(int(p.Carried))
	}
	return what + " at=" + strconv.Itoa(int(p.At))
}

var rowsOfNames = [...]string{rowsOfPort: "port", rowsOfPropagate: "propagate", rowsOfBackprop: "backprop"}

// text returns the rows as "rows at=12 propagate=3 [node/n/t] deriv[node/n/t]".
func (r *commandRows) text() string {
	b := fmt.Appendf(nil, "rows at=%d %s=%d", r.at, rowsOfNames[r.command], r.component)
	for _, info := range r.rows {
		b = append(b, ' ')
		if info.IsDeriv {
			b = append(b, "deriv"...)
		}
		b = append(b, '[')
		list := info.Cindexes
		k := 3
		if slices.ContainsFunc(list, func(x index.Cindex) bool { return x.Index.X != 0 }) {
			k = 4
		}
		b = index.AppendRuns(b, k, len(list), func(i, j int) int32 {
			return [4]int32{list[i].Node, list[i].Index.N, list[i].Index.T, list[i].Index.X}[j]
		})
		b = append(b, ']')
	}
	return string(b)
}

// readProgram attaches a program to its graph.
func readProgram(g *fgraph.FunctionGraph, s *graphfile.Section, net *nnet3.Nnet) error {
	if _, ok := ProgramOf(g); ok {
		return s.Errorf(0, "%w: a second program", errText)
	}
	r := &programReader{p: &Program{Graph: g}, claimed: newFileDialect(net)}
	if net != nil {
		r.p.Network, r.p.numComponents = net, net.NumComponents()
	}
	for i, line := range s.Lines {
		if err := r.line(i, line); err != nil {
			return s.Errorf(i, "%w", err)
		}
	}
	p := r.p
	if len(s.Lines) == 0 || len(p.Inputs) != len(g.Inputs()) || len(p.Outputs) != len(g.Outputs()) {
		return s.Errorf(len(s.Lines), "%w: the program has %d inputs and %d outputs, and the graph %d and %d", errText,
			len(p.Inputs), len(p.Outputs), len(g.Inputs()), len(g.Outputs()))
	}
	slices.SortStableFunc(p.rows, func(a, b commandRows) int { return cmp.Compare(a.at, b.at) })
	return g.Attach(p)
}

type programReader struct {
	p       *Program
	claimed *fileDialect
}

func (r *programReader) line(i int, line string) error {
	kind, rest, _ := strings.Cut(line, " ")
	switch {
	case i == 0:
		return r.head(line)
	case kind == "rows":
		return r.rows(rest)
	case kind == "input" && len(r.p.Outputs) == 0 && len(r.p.Inputs) < len(r.p.Graph.Inputs()):
		return r.port(&r.p.Inputs, rest, r.p.Graph.Inputs())
	case kind == "output" && len(r.p.Outputs) < len(r.p.Graph.Outputs()):
		return r.port(&r.p.Outputs, rest, r.p.Graph.Outputs())
	}
	return fmt.Errorf("%w: neither an input, an output nor rows, or one too many: %q", errText, fileio.Excerpt(line, 0))
}

// head reads "commands=10 marker=5 largest=100 derivative rows".
func (r *programReader) head(line string) error {
	p := r.p
	for _, w := range strings.Fields(line) {
		key, value, _ := strings.Cut(w, "=")
		var err error
		var n int32
		switch key {
		case "commands":
			n, err = parseInt(value, 0, 1<<30)
			p.numCommands = int(n)
		case "marker":
			p.Marker, err = parseInt(value, 0, 1<<30)
		case "largest":
			p.largestOp, err = strconv.ParseInt(value, 10, 64)
		default:
			flags := p.flags()
			i := slices.IndexFunc(flags[:], func(f namedFlag) bool { return f.name == w })
			if i < 0 {
				return fmt.Errorf("%w: unknown word %q", errText, fileio.Excerpt(w, 0))
			}
			*flags[i].flag = true
		}
		if err != nil {
			return fmt.Errorf("%s: %w", fileio.Excerpt(key, 0), err)
		}
	}
	return nil
}

// port reads "node=3 at=5".
func (r *programReader) port(ports *[]Port, text string, vars []*fgraph.Variable) error {
	what, at, _ := strings.Cut(text, " at=")
	key, value, _ := strings.Cut(what, "=")
	port := Port{Node: -1, Component: -1}
	n, err := parseInt(value, 0, 1<<30)
	if err != nil {
		return err
	}
	if port.At, err = parseInt(at, 0, 1<<30); err != nil {
		return err
	}
	switch key {
	case "node":
		port.Node = n
	case "state":
		port.Component = n
	case "carried":
		if port.Carried = n; n == 0 {
			return fmt.Errorf("%w: matrix 0 is not handed over", errText)
		}
	default:
		return fmt.Errorf("%w: an input or output is a node, a state or carried: %q", errText, fileio.Excerpt(key, 0))
	}
	var want fgraph.Type = StateType{n}
	have := vars[len(*ports)].Type()
	if _, matrix := have.(MatrixType); matrix != port.IsMatrix() || !matrix && have != want {
		return fmt.Errorf("%w: %s is a %v", errText, fileio.Excerpt(what, 0), have)
	}
	*ports = append(*ports, port)
	return nil
}

// rows reads what commandRows.text wrote, without "rows".
func (r *programReader) rows(text string) error {
	head, lists, _ := strings.Cut(text, "[")
	words := strings.Fields(head)
	if len(words) < 2 || len(words) > 3 {
		return fmt.Errorf("%w: rows have the form \"rows at=1 propagate=2 [node/n/t] [node/n/t]\"", errText)
	}
	c := commandRows{}
	at, _ := strings.CutPrefix(words[0], "at=")
	var err error
	if c.at, err = parseInt(at, 0, 1<<30); err != nil {
		return err
	}
	name, number, _ := strings.Cut(words[1], "=")
	kind := slices.Index(rowsOfNames[:], name)
	if c.component, err = parseInt(number, 0, 1<<30); err != nil || kind < 0 {
		return fmt.Errorf("%w: unknown kind of rows: %q", errText, fileio.Excerpt(words[1], 0))
	}
	c.command = rowsOf(kind)
	first, second, _ := strings.Cut(lists, "]")
	list, end, closed := strings.Cut(strings.TrimSpace(second), "[")
	last, ok := strings.CutSuffix(end, "]")
	if !closed || !ok || list != "" && list != "deriv" || len(words) == 3 && words[2] != "deriv" {
		return fmt.Errorf("%w: two lists of rows are missing", errText)
	}
	c.rows[0].IsDeriv, c.rows[1].IsDeriv = len(words) == 3, list == "deriv"
	for i, text := range [2]string{first, last} {
		if c.rows[i].Cindexes, err = r.cindexes(text); err != nil {
			return err
		}
	}
	r.p.rows = append(r.p.rows, c)
	return nil
}

func (r *programReader) cindexes(text string) (list []index.Cindex, err error) {
	err = index.ParseRuns(text, 3, 4, func(t []int32) error {
		list = append(list, index.Cindex{Node: t[0], Index: index.Index{N: t[1], T: t[2], X: t[3]}})
		return r.claimed.claim(1)
	})
	return list, err
}

// Graphs returns the graphs of the programs, in order. As the graphs of one graphfile.File they are
// written and read as a chain.
func (ch *Chain) Graphs() []*fgraph.FunctionGraph {
	return lists.Map(ch.Programs, func(p *Program) *fgraph.FunctionGraph { return p.Graph })
}

// ChainOf returns the chain of the programs of graphs, such as those of a file.
func ChainOf(graphs ...*fgraph.FunctionGraph) (*Chain, error) {
	ch := &Chain{Loop: -1}
	for i, g := range graphs {
		p, ok := ProgramOf(g)
		if !ok {
			return nil, fmt.Errorf("%w: graph %d has no section %q", errText, i+1, programSection)
		}
		if p.loops {
			if ch.Loop >= 0 {
				return nil, fmt.Errorf("%w: graph %d begins a second loop", errText, i+1)
			}
			ch.Loop = i
		}
		ch.Programs = append(ch.Programs, p)
	}
	if ch.Loop < 0 {
		return ch, nil
	}
	last := ch.Programs[len(graphs)-1].carriedOut()
	if ch.Loop == 0 && len(last) > 0 {
		return nil, fmt.Errorf("%w: the loop uses matrices that no graph makes before it", errText)
	}
	if ch.Loop > 0 {
		for _, m := range ch.Programs[ch.Loop-1].carriedOut() {
			if !slices.Contains(last, m) {
				return nil, fmt.Errorf("%w: the last graph does not hand over matrix %d, with which the loop begins", errText, m)
			}
		}
	}
	return ch, nil
}
