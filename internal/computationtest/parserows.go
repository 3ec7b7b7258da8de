package computationtest

import (
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// repeats reads " x10", how often the last item of a list stands.
func (r *reader) repeats() int {
	if len(r.tokens) > 0 && strings.HasPrefix(r.tokens[0], "x") {
		n, err := strconv.Atoi(r.next()[1:])
		if err != nil || n < 1 || n > 1<<20 {
			r.fail("a number of times expected")
			return 0
		}
		return n
	}
	return 1
}

// rows reads row numbers up to the token end: 5, 0:9, 0:27:3, 5 x10, -.
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
			r.fail("%d:%d:%d is no list of rows", first, last, step)
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

// multi reads rows of several views, up to and with the closing bracket, and returns the number of the list.
func (r *reader) multi() int32 {
	var list []computation.Pair
	for r.err == nil {
		if r.take("-") {
			for n := r.repeats(); n > 0; n-- {
				list = append(list, computation.Pair{-1, -1})
			}
		} else {
			v := r.view()
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

// ranges reads ranges of rows, up to and with the closing bracket.
func (r *reader) ranges(all int32) []computation.Pair {
	var list []computation.Pair
	for r.err == nil && !r.take(")") {
		r.expect(",")
		p := computation.Pair{-1, -1}
		if !r.take("-") {
			first, n := r.span(all)
			p = computation.Pair{first, first + n}
		}
		for n := r.repeats(); n > 0; n-- {
			list = append(list, p)
		}
	}
	return list
}

// runName reports whether a run of a component follows, and takes its name.
func (r *reader) runName() (string, bool) {
	if len(r.tokens) < 2 || r.tokens[1] != "(" {
		return "", false
	}
	for _, how := range [...]string{".Propagate", ".Backprop", ".BackpropNoModelUpdate"} {
		if strings.HasSuffix(r.tokens[0], how) {
			return r.next(), true
		}
	}
	return "", false
}

// run reads the operands of a run of a component, which writes to dst.
func (r *reader) run(name string, dst int32) {
	dot := strings.LastIndexByte(name, '.')
	comp, ok := r.components[name[:dot]]
	if !ok {
		r.fail("there is no component %s", name[:dot])
		return
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
	switch name[dot:] {
	case ".Propagate":
		r.emit(computation.Propagate, comp, 0, operands["x"], dst, operands["memo"], operands["store"])
	case ".Backprop":
		r.emit(computation.Backprop, comp, 0, operands["x"], operands["y"], operands["dy"], dst, operands["memo"])
	default:
		r.emit(computation.BackpropNoModelUpdate, comp, 0, operands["x"], operands["y"], operands["dy"], dst, operands["memo"])
	}
}
