package computationtest

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// ErrText is the kind of all errors of Parse.
var ErrText = errors.New("computationtest: not a computation")

// Parse reads a computation in the form in which computation.Print writes it, and makes stand-ins
// for its components. Commands need no numbers unless a goto names them; # begins a comment.
// Matrices and components, which Print does not write, come before the commands that use them:
//
//	component affine 4x3 simple|updatable|propagate-adds
//	m1 6x4
//	m2 6x3
//	accept m1 for input
//	m2 = undefined(6, 3)
//	m2 = 0
//	m2 += affine.Propagate(m1)
//	provide m2 for output
//
// Ranges include both ends. Nodes are numbered in order of appearance, but node7 is number 7.
// Whether components write or add depends on their properties, not on = or +=. The computation
// needs the derivative of the model if an updatable component runs backward.
func Parse(text string) (*computation.Computation, Net, error) {
	r := &reader{c: computation.New(), components: make(map[string]int32), nodes: make(map[string]int32),
		views: make(map[computation.SubMatrixInfo]int32), labels: make(map[string]int32)}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if err := r.line(strings.TrimSpace(line)); err != nil {
			return nil, nil, fmt.Errorf("%w: line %d, %q: %w", ErrText, i+1, line, err)
		}
	}
	for _, cmd := range r.c.Commands {
		if cmd.Type == computation.Backprop && r.infos[cmd.Args[0]].Has(component.Updatable) {
			r.c.NeedModelDerivative = true
		}
	}
	return r.c, NewNet(r.infos), nil
}

// MustParse is Parse for tests.
func MustParse(t testing.TB, text string) (*computation.Computation, Net) {
	t.Helper()
	c, net, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c, net
}

// reader turns lines into commands. Its methods consume tokens; the first fault stays in err.
type reader struct {
	c          *computation.Computation
	infos      []computation.ComponentInfo
	components map[string]int32
	nodes      map[string]int32
	views      map[computation.SubMatrixInfo]int32
	labels     map[string]int32 // numbers of commands by their text
	tokens     []string
	err        error
}

var (
	token  = regexp.MustCompile(`[A-Za-z_][\w.-]*|[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?|\+=|\S`)
	matrix = regexp.MustCompile(`^m([0-9]+)\s+([0-9]+)x([0-9]+)( \(stride = columns\))?( .*)?$`)
	number = regexp.MustCompile(`^(c[0-9]+)\s+`)
)

func (r *reader) line(line string) error {
	// The declaration of a matrix has no command number, and its size is no expression, so it is
	// recognized as a whole line before anything is cut into tokens.
	if m := matrix.FindStringSubmatch(line); m != nil {
		return r.matrix(m)
	}
	if m := number.FindStringSubmatch(line); m != nil {
		r.labels[m[1]] = int32(len(r.c.Commands))
		line = line[len(m[0]):]
	}
	if line == "" {
		return nil
	}
	if strings.HasPrefix(line, "----") {
		r.emit(computation.NoOperationMarker)
		return nil
	}
	r.tokens = token.FindAllString(line, -1)
	r.statement()
	if r.err == nil && len(r.tokens) > 0 {
		r.fail("unexpected %q", strings.Join(r.tokens, " "))
	}
	return r.err
}

func (r *reader) matrix(m []string) error {
	n, _ := strconv.Atoi(m[1])
	rows, err1 := strconv.Atoi(m[2])
	cols, err2 := strconv.Atoi(m[3])
	if n != len(r.c.Matrices) || err1 != nil || err2 != nil || rows > 1<<20 || cols > 1<<20 {
		return fmt.Errorf("want m%d with a reasonable size", len(r.c.Matrices))
	}
	sub := r.c.NewMatrix(rows, cols, m[4] != "")
	r.views[r.c.Submatrices[sub]] = sub
	return nil
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// next consumes a token.
func (r *reader) next() string {
	if len(r.tokens) == 0 {
		r.fail("unexpected end of line")
		return ""
	}
	t := r.tokens[0]
	r.tokens = r.tokens[1:]
	return t
}

// take consumes the next token if it is t, and reports whether it was.
func (r *reader) take(t string) bool {
	if len(r.tokens) > 0 && r.tokens[0] == t {
		r.tokens = r.tokens[1:]
		return true
	}
	return false
}

func (r *reader) expect(tokens ...string) {
	for _, t := range tokens {
		if got := r.next(); got != t {
			r.fail("got %q, want %q", got, t)
		}
	}
}

func (r *reader) integer() int32 {
	t := r.next()
	n, err := strconv.ParseInt(t, 10, 32)
	if err != nil {
		r.fail("%q is not a number", t)
	}
	return int32(n)
}

func (r *reader) float() float32 {
	sign := ""
	if r.take("-") {
		sign = "-"
	}
	t := r.next()
	f, err := strconv.ParseFloat(sign+t, 32)
	if err != nil {
		r.fail("%q is not a number", t)
	}
	return float32(f)
}

func (r *reader) emit(t computation.CommandType, args ...int32) { r.emitScaled(t, 1, args...) }

func (r *reader) emitScaled(t computation.CommandType, alpha float32, args ...int32) {
	r.c.Commands = append(r.c.Commands, computation.NewScaledCommand(t, alpha, args...))
}

// statement reads a command, or a component.
func (r *reader) statement() {
	first := r.next()
	switch first {
	case "component":
		r.component()
	case "accept":
		r.port(computation.AcceptInput)
	case "provide":
		r.port(computation.ProvideOutput)
	case "swap":
		r.expect("(")
		a := r.view()
		r.expect(",")
		b := r.view()
		r.expect(")")
		r.emit(computation.SwapMatrix, a, b)
	case "compress":
		v := r.view()
		r.tokens = nil
		// The ways to compress differ in precision, which the interpreter does not model.
		r.emitScaled(computation.CompressMatrix, 0, v, computation.CompressUint8, 1)
	case "decompress":
		r.emit(computation.DecompressMatrix, r.view())
	case "no-op":
		t := computation.NoOperation
		if r.take("(") {
			r.expect("permanent", ")")
			t = computation.NoOperationPermanent
		}
		r.emit(t)
	case "label":
		r.emit(computation.NoOperationLabel)
	case "goto":
		at, ok := r.labels[r.next()]
		if !ok {
			r.fail("unknown command number")
		}
		r.emit(computation.GotoLabel, at)
	case "rows":
		r.scatter()
	default:
		r.tokens = append([]string{first}, r.tokens...)
		r.assignment()
	}
}

func (r *reader) component() {
	info := computation.ComponentInfo{Name: r.next(), Type: "Opaque", InputDim: int(r.integer())}
	size := r.next() // such as x3
	n, err := strconv.Atoi(strings.TrimPrefix(size, "x"))
	if err != nil {
		r.fail("%q is not a number of columns", size)
	}
	info.OutputDim = n
	for len(r.tokens) > 0 && r.err == nil {
		name := r.next()
		p := component.Properties(1)
		for p.String() != name && p.String() != "" {
			p <<= 1
		}
		if p.String() == "" {
			r.fail("unknown property %q", name)
		}
		info.Properties |= p
		r.take("|")
	}
	r.components[info.Name] = int32(len(r.infos))
	r.infos = append(r.infos, info)
}

func (r *reader) port(t computation.CommandType) {
	v := r.view()
	r.expect("for")
	name := r.next()
	if r.take("(") {
		r.expect("derivative", ")")
	}
	n, ok := r.nodes[name]
	if digits, isNumber := strings.CutPrefix(name, "node"); isNumber {
		r.tokens = append([]string{digits}, r.tokens...)
		n, ok = r.integer(), true
	}
	if !ok {
		n = int32(len(r.nodes))
		r.nodes[name] = n
	}
	r.emit(t, v, n)
}

// view reads a view: m2, m2(0:1, :), or [] for none.
func (r *reader) view() int32 {
	name := r.next()
	if name == "[" {
		r.expect("]")
		return 0
	}
	m, err := strconv.Atoi(strings.TrimPrefix(name, "m"))
	if err != nil || !strings.HasPrefix(name, "m") || m <= 0 || m >= len(r.c.Matrices) {
		r.fail("%q is not a matrix", name)
		return 0
	}
	size := r.c.Matrices[m]
	info := computation.SubMatrixInfo{Matrix: int32(m), NumRows: size.Rows, NumCols: size.Cols}
	if r.take("(") {
		info.RowOffset, info.NumRows = r.span(size.Rows)
		r.expect(",")
		info.ColOffset, info.NumCols = r.span(size.Cols)
		r.expect(")")
	}
	// Equal views share a number, as in what a compiler makes.
	if n, ok := r.views[info]; ok {
		return n
	}
	n := int32(len(r.c.Submatrices))
	r.c.Submatrices = append(r.c.Submatrices, info)
	r.views[info] = n
	return n
}

// span reads a range 0:1, or : for all, and returns its first element and length.
func (r *reader) span(all int32) (int32, int32) {
	if r.take(":") {
		return 0, all
	}
	first := r.integer()
	r.expect(":")
	last := r.integer()
	if r.err == nil && (first > last || last >= all) {
		r.fail("no range %d:%d among %d", first, last, all)
	}
	return first, last + 1 - first
}

// assignment reads a command that begins with its destination or with a component.
func (r *reader) assignment() {
	if r.run(0) {
		return
	}
	dst := r.view()
	adds := r.take("+=")
	if !adds {
		r.expect("=")
	}
	if r.run(dst) {
		return
	}
	switch {
	// An allocation repeats the size of its matrix, which the declaration has given.
	case !adds && r.take("undefined"):
		r.tokens = nil
		r.emit(computation.AllocMatrix, dst)
		return
	case !adds && r.take("["):
		r.expect("]")
		r.emit(computation.DeallocMatrix, dst)
		return
	}
	alpha := float32(1)
	// A number by itself is a constant, and one before an asterisk a scale.
	if t := r.tokens; len(t) > 0 && (t[0] == "-" || t[0][0] >= '0' && t[0][0] <= '9') {
		alpha = r.float()
		if !r.take("*") {
			r.emitScaled(computation.SetConst, alpha, dst)
			return
		}
	}
	r.source(dst, adds, alpha)
}

// source reads what a command copies or adds to dst.
func (r *reader) source(dst int32, adds bool, alpha float32) {
	pick := func(add, copying computation.CommandType) computation.CommandType {
		if adds {
			return add
		}
		return copying
	}
	switch {
	case r.take("row_sums"):
		r.expect("(")
		src := r.view()
		list := int32(len(r.c.IndexesRanges))
		r.c.IndexesRanges = append(r.c.IndexesRanges, r.ranges(r.c.Submatrices[src].NumRows))
		r.emitScaled(computation.AddRowRanges, alpha, dst, src, list)
	case r.take("rows"):
		r.expect("(")
		src := r.rowsView()
		// With a second argument the rows are of one view. Otherwise each entry names its own.
		if src < 0 || !r.take(",") {
			r.emitScaled(pick(computation.AddRowsMulti, computation.CopyRowsMulti), alpha, dst, r.multi(src))
			return
		}
		r.expect("[")
		list := int32(len(r.c.Indexes))
		r.c.Indexes = append(r.c.Indexes, r.rows("]"))
		r.expect(")")
		r.emitScaled(pick(computation.AddRows, computation.CopyRows), alpha, dst, src, list)
	default:
		r.emitScaled(pick(computation.MatrixAdd, computation.MatrixCopy), alpha, dst, r.view())
	}
}

// scatter reads the rest of a command that writes rows of several views, after "rows".
func (r *reader) scatter() {
	r.expect("(")
	list := r.multi(r.rowsView())
	t := computation.CopyToRowsMulti
	if r.take("+=") {
		t = computation.AddToRowsMulti
	} else {
		r.expect("=")
	}
	alpha := float32(1)
	if len(r.tokens) > 1 && r.tokens[1] == "*" || len(r.tokens) > 2 && r.tokens[2] == "*" {
		alpha = r.float()
		r.expect("*")
	}
	r.emitScaled(t, alpha, r.view(), list)
}
