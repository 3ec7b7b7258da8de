package computationtest

import (
	"fmt"
	"slices"
	"strings"
)

// Random makes up a computation in the form that Parse reads. It is sound, and may have everything
// except loops. pick chooses among n alternatives, numbered from 0.
func Random(pick func(n int) int) string {
	g := &generator{pick: pick}
	for range 1 + pick(3) {
		m := g.declare(1+pick(5), 1+pick(4), false)
		g.printf("accept m%d for in%d", m, m)
		g.live = append(g.live, m)
	}
	for range 2 + pick(16) {
		g.step()
	}
	for range 1 + g.pick(2) {
		m := g.any()
		g.give(m, fmt.Sprintf("out%d", m))
	}
	// A memo must be consumed. Otherwise a backward part is a matter of chance.
	if g.memos > 0 || len(g.runs) > 0 && pick(3) > 0 {
		g.backward()
	}
	for _, m := range g.live {
		g.printf("m%d = []", m)
	}
	return g.text.String()
}

type generator struct {
	pick  func(int) int
	text  strings.Builder
	sizes [][2]int // by matrix, from 1
	live  []int    // allocated matrices, all of them defined
	runs  []forwardRun
	last  bool // the backward part has begun

	memos, components int
}

// forwardRun is a forward run of a component, which may have a backward run.
type forwardRun struct {
	name           string
	x, y           string
	rows, cols     int // of y
	xRows, in      int // of x
	needsX, needsY bool
	contiguous     bool
	memo           int
}

func (g *generator) printf(format string, args ...any) { fmt.Fprintf(&g.text, format+"\n", args...) }

func (g *generator) chance(percent int) bool { return g.pick(100) < percent }

func (g *generator) declare(rows, cols int, contiguous bool) int {
	g.sizes = append(g.sizes, [2]int{rows, cols})
	stride := ""
	if contiguous {
		stride = " (stride = columns)"
	}
	g.printf("m%d %dx%d%s", len(g.sizes), rows, cols, stride)
	return len(g.sizes)
}

// fresh makes a matrix of zeros.
func (g *generator) fresh(rows, cols int, contiguous bool) int {
	m := g.declare(rows, cols, contiguous)
	g.printf("m%d = undefined(%d, %d)", m, rows, cols)
	g.printf("m%d = 0", m)
	g.live = append(g.live, m)
	return m
}

func (g *generator) rows(m int) int { return g.sizes[m-1][0] }
func (g *generator) cols(m int) int { return g.sizes[m-1][1] }

func (g *generator) any() int { return g.live[g.pick(len(g.live))] }

// other returns a live matrix other than m, 0 for none.
func (g *generator) other(m int) int {
	if k := g.any(); k != m {
		return k
	}
	return 0
}

// span returns a range of n among all, as text.
func (g *generator) span(n, all int) string {
	if n == all {
		return ":"
	}
	first := g.pick(all - n + 1)
	return fmt.Sprintf("%d:%d", first, first+n-1)
}

// view returns a view of a size in matrix m.
func (g *generator) view(m, rows, cols int) string {
	if rows == g.rows(m) && cols == g.cols(m) {
		return fmt.Sprintf("m%d", m)
	}
	return fmt.Sprintf("m%d(%s, %s)", m, g.span(rows, g.rows(m)), g.span(cols, g.cols(m)))
}

func (g *generator) scale() string { return [...]string{"", "", "", "0.5 * ", "-2 * "}[g.pick(5)] }

func (g *generator) equals() string { return [...]string{"=", "+="}[g.pick(2)] }

// step makes one or more commands.
func (g *generator) step() {
	dst := g.any()
	if g.chance(30) {
		dst = g.fresh(1+g.pick(6), 1+g.pick(6), false)
	}
	src := g.other(dst)
	switch kind := g.pick(10); {
	case kind == 0:
		g.printf("%s = %s", g.view(dst, 1+g.pick(g.rows(dst)), 1+g.pick(g.cols(dst))), [...]string{"0", "1", "-0.5"}[g.pick(3)])
	case kind <= 4:
		g.run()
	// The rest needs two matrices. Where there is only one, this step does nothing.
	case src == 0:
	case kind == 5 || kind == 6:
		rows, cols := 1+g.pick(min(g.rows(dst), g.rows(src))), 1+g.pick(min(g.cols(dst), g.cols(src)))
		g.printf("%s %s %s%s", g.view(dst, rows, cols), g.equals(), g.scale(), g.view(src, rows, cols))
	case kind == 7:
		g.moveRows(dst, src)
	case kind == 8:
		g.multi(dst)
	// What a backward run will read must neither go nor move.
	case slices.ContainsFunc(g.runs, func(r forwardRun) bool { return g.reads(r, src) }):
	case g.chance(50):
		g.swap(src)
	default:
		g.printf("m%d = []", src)
		g.live = slices.DeleteFunc(g.live, func(m int) bool { return m == src })
	}
}

// reads reports whether the backward run needs matrix m.
func (g *generator) reads(r forwardRun, m int) bool {
	var x, y int
	// A view begins with its matrix.
	fmt.Sscanf(r.x, "m%d", &x)
	fmt.Sscanf(r.y, "m%d", &y)
	return r.needsX && x == m || r.needsY && y == m
}

// swap gives the memory of a matrix to a new one.
func (g *generator) swap(src int) {
	m := g.declare(g.rows(src), g.cols(src), false)
	g.printf("swap(m%d, m%d)", m, src)
	g.printf("m%d = 0", m)
	g.live[slices.Index(g.live, src)] = m
}

// moveRows moves or sums rows of one matrix.
func (g *generator) moveRows(dst, src int) {
	rows, cols := 1+g.pick(g.rows(dst)), 1+g.pick(min(g.cols(dst), g.cols(src)))
	from := 1 + g.pick(g.rows(src))
	var list []string
	ranges := g.chance(30)
	for range rows {
		first := g.pick(from)
		switch {
		case g.chance(20):
			list = append(list, "-")
		case ranges:
			list = append(list, fmt.Sprintf("%d:%d", first, first+g.pick(from-first)))
		default:
			list = append(list, fmt.Sprint(first))
		}
	}
	d, s := g.view(dst, rows, cols), g.view(src, from, cols)
	if ranges {
		g.printf("%s += %srow_sums(%s, %s)", d, g.scale(), s, strings.Join(list, ", "))
		return
	}
	g.printf("%s %s %srows(%s, [%s])", d, g.equals(), g.scale(), s, strings.Join(list, ", "))
}

// multi moves rows between matrix m and several others.
func (g *generator) multi(m int) {
	rows, cols := 1+g.pick(g.rows(m)), 1+g.pick(g.cols(m))
	var list []string
	views := map[int]string{} // of other matrices, one each
	used := map[[2]int]bool{}
	to := g.chance(50)
	for range rows {
		k := g.other(m)
		if k == 0 || g.cols(k) < cols || g.chance(20) {
			list = append(list, "-")
			continue
		}
		if views[k] == "" {
			views[k] = g.view(k, g.rows(k), cols)
		}
		row := g.pick(g.rows(k))
		// No command may write a row twice.
		if to && used[[2]int{k, row}] {
			list = append(list, "-")
			continue
		}
		used[[2]int{k, row}] = true
		list = append(list, fmt.Sprintf("%s[%d]", views[k], row))
	}
	if len(used) == 0 {
		return
	}
	v := g.view(m, rows, cols)
	switch {
	case !to:
		g.printf("%s %s %srows(%s)", v, g.equals(), g.scale(), strings.Join(list, ", "))
	case g.chance(50):
		g.printf("rows(%s) = %s", strings.Join(list, ", "), v)
	default:
		g.printf("rows(%s) += %s%s", strings.Join(list, ", "), g.scale(), v)
	}
}

// run runs a new component forward.
func (g *generator) run() {
	g.components++
	x := g.any()
	rows, in, out := 1+g.pick(g.rows(x)), 1+g.pick(g.cols(x)), 1+g.pick(5)
	r := forwardRun{name: fmt.Sprintf("f%d", g.components), rows: rows, xRows: rows, cols: out, in: in}
	var props []string
	add := func(percent int, name string) bool {
		if g.chance(percent) {
			props = append(props, name)
			return true
		}
		return false
	}
	simple := add(80, "simple")
	if !simple {
		r.rows = 1 + g.pick(4)
	}
	if add(30, "updatable") || g.chance(20) {
		props = append(props, "backprop-needs-input")
		r.needsX = true
	}
	r.needsY = add(25, "backprop-needs-output")
	r.contiguous = g.chance(10)
	adds := add(30, "propagate-adds")
	inPlace := simple && in == out && !r.contiguous && !r.needsX && add(40, "propagate-in-place")
	add(40, "backprop-adds")
	if simple && in == out {
		add(30, "backprop-in-place")
	}
	stats, memo := add(15, "stores-stats"), !g.last && add(15, "uses-memo")
	if r.contiguous {
		props = append(props, "input-contiguous", "output-contiguous")
		k := g.fresh(rows, in, true)
		g.printf("m%d += %s", k, g.view(x, rows, in))
		x = k
	}
	g.printf("component %s %dx%d %s", r.name, in, out, strings.Join(props, "|"))
	r.x = g.view(x, rows, in)
	switch y := g.other(x); {
	case inPlace && g.chance(50):
		r.y = r.x
	case r.contiguous || y == 0 || g.rows(y) < r.rows || g.cols(y) < out || g.chance(50):
		r.y = fmt.Sprintf("m%d", g.fresh(r.rows, out, r.contiguous))
	default:
		r.y = g.view(y, r.rows, out)
	}
	equals, rest := "=", ""
	if adds && r.x != r.y {
		equals = "+="
	}
	if memo {
		g.memos++
		r.memo = g.memos
		rest = fmt.Sprintf(", memo %d", g.memos)
	}
	if stats && g.chance(70) {
		rest += ", store stats"
	}
	g.printf("%s %s %s.Propagate(%s%s)", r.y, equals, r.name, r.x, rest)
	g.runs = append(g.runs, r)
	if g.chance(20) && rows <= r.rows && in <= out {
		g.bypass(r.x, rows, in, r.y, r.rows, out)
	}
}

// bypass adds the input of a run to its output, in a new matrix.
func (g *generator) bypass(x string, xRows, xCols int, y string, rows, cols int) {
	sum := g.fresh(rows, cols, false)
	g.printf("%s += %s%s", g.view(sum, xRows, xCols), g.scale(), x)
	g.printf("m%d += %s", sum, y)
}

// give provides a copy of a matrix, because the matrix itself may be needed later.
func (g *generator) give(m int, node string) {
	out := g.fresh(g.rows(m), g.cols(m), false)
	g.printf("m%d += m%d", out, m)
	g.printf("provide m%d for %s", out, node)
	g.live = slices.DeleteFunc(g.live, func(k int) bool { return k == out })
}

// backward makes backward runs in the opposite order.
func (g *generator) backward() {
	g.last = true
	g.printf("---- marker ----")
	dy := g.declare(1+g.pick(5), 1+g.pick(4), false)
	g.printf("accept m%d for out (derivative)", dy)
	g.live = append(g.live, dy)
	for _, r := range slices.Backward(slices.Clone(g.runs)) {
		if r.memo == 0 && g.chance(30) {
			continue
		}
		g.back(r)
		if g.chance(30) {
			g.step()
		}
	}
	g.give(g.any(), "in (derivative)")
}

func (g *generator) back(r forwardRun) {
	dy := g.fresh(r.rows, r.cols, r.contiguous)
	if k := g.other(dy); k != 0 {
		rows, cols := min(r.rows, g.rows(k)), min(r.cols, g.cols(k))
		g.printf("%s += %s%s", g.view(dy, rows, cols), g.scale(), g.view(k, rows, cols))
	}
	operands := fmt.Sprintf("dy: m%d", dy)
	if r.needsX {
		operands += ", x: " + r.x
	}
	if r.needsY {
		operands += ", y: " + r.y
	}
	if r.memo > 0 {
		operands += fmt.Sprintf(", memo %d", r.memo)
	}
	how := [...]string{"Backprop", "BackpropNoModelUpdate"}[g.pick(2)]
	dx := g.fresh(r.xRows, r.in, r.contiguous)
	g.printf("m%d += %s.%s(%s)", dx, r.name, how, operands)
	if g.chance(30) && r.rows <= r.xRows && r.cols <= r.in {
		g.bypass(fmt.Sprintf("m%d", dy), r.rows, r.cols, fmt.Sprintf("m%d", dx), r.xRows, r.in)
	}
}
