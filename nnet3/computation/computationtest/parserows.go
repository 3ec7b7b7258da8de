package computationtest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// repeats reads how often the last item of a list is repeated: "x10", or nothing for once.
func (r *reader) repeats() int {
	if len(r.tokens) > 0 && strings.HasPrefix(r.tokens[0], "x") {
		n, err := strconv.Atoi(r.next()[1:])
		if err != nil || n < 1 || n > 1<<20 {
			r.fail("want a number of times")
			return 0
		}
		return n
	}
	return 1
}

// rows reads row numbers up to and including the token end: 5, 0:9, 0:27:3, 5 x10, -.
func (r *reader) rows(end string) []int32 {
	list := []int32{}
	for r.err == nil {
		first, last, step := int32(-1), int32(-1), int32(1)
		if !r.take("-") {
			first = r.integer()
			last = first
			if r.take(":") {
				last = r.integer()
			}
			if r.take(":") {
				if step = 1; r.take("-") {
					step = -1
				}
				step *= r.integer()
			}
		}
		if step == 0 || (last-first)%step != 0 || (last-first)/step < 0 || (last-first)/step > 1<<20 {
			r.fail("%d:%d:%d is not a list of rows", first, last, step)
			return list
		}
		for n := r.repeats(); n > 0 && len(list) <= 1<<20; n-- {
			for i := first; ; i += step {
				list = append(list, i)
				if i == last {
					break
				}
			}
		}
		if r.take(end) {
			return list
		}
		r.expect(",")
	}
	return list
}

// rowsView reads the view of the next item of a list of rows, -1 for an item without.
func (r *reader) rowsView() int32 {
	if r.take("-") {
		return -1
	}
	return r.view()
}

// multi reads the rest of a list of rows of several views, of which v is the first, with the
// closing bracket, and returns the vector's number.
func (r *reader) multi(v int32) int32 {
	var list []computation.Pair
	for ; r.err == nil; v = r.rowsView() {
		if v < 0 {
			list = append(list, slices.Repeat([]computation.Pair{{-1, -1}}, r.repeats())...)
		} else {
			r.expect("[")
			for _, row := range r.rows("]") {
				list = append(list, computation.Pair{v, row})
			}
		}
		if r.take(")") {
			break
		}
		r.expect(",")
	}
	r.c.IndexesMulti = append(r.c.IndexesMulti, list)
	return int32(len(r.c.IndexesMulti) - 1)
}

// ranges reads ranges of rows up to and including the closing bracket.
func (r *reader) ranges(all int32) []computation.Pair {
	var list []computation.Pair
	for r.err == nil && !r.take(")") {
		r.expect(",")
		p := computation.Pair{-1, -1}
		if !r.take("-") {
			first, n := r.span(all)
			p = computation.Pair{first, first + n}
		}
		list = append(list, slices.Repeat([]computation.Pair{p}, r.repeats())...)
	}
	return list
}

// run reads a run of a component that writes to dst, such as f.Propagate(m1). It reports whether
// there is one.
func (r *reader) run(dst int32) bool {
	if len(r.tokens) < 2 || r.tokens[1] != "(" {
		return false
	}
	name := r.tokens[0]
	dot := strings.LastIndexByte(name, '.')
	t := computation.Propagate
	for t.String() != name[dot+1:] {
		if t++; t > computation.BackpropNoModelUpdate {
			return false
		}
	}
	if dot < 0 {
		return false
	}
	r.tokens = r.tokens[1:]
	comp, ok := r.components[name[:dot]]
	if !ok {
		r.fail("unknown component %s", name[:dot])
		return true
	}
	operands := map[string]int32{}
	r.expect("(")
	for r.err == nil && !r.take(")") {
		if len(operands) > 0 {
			r.expect(",")
		}
		switch {
		case r.take("store"):
			r.expect("stats")
			operands["store"] = 1
		case r.take("memo"):
			operands["memo"] = r.integer()
		case len(r.tokens) > 1 && r.tokens[1] == ":":
			what := r.next()
			r.expect(":")
			operands[what] = r.view()
		default:
			operands["x"] = r.view()
		}
	}
	if t == computation.Propagate {
		r.emit(t, comp, 0, operands["x"], dst, operands["memo"], operands["store"])
	} else {
		r.emit(t, comp, 0, operands["x"], operands["y"], operands["dy"], dst, operands["memo"])
	}
	return true
}
