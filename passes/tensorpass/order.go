package tensorpass

import (
	"slices"
	"sync"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// orderOps are those that return one of their arguments, 0, 1, -1 or an opposite, by what is larger, equal or negative:
// some of them always, and the last ones for arguments that are 0, 1 or -1.
var orderOps = []array.Opcode{
	array.Maximum, array.Minimum, array.Abs, array.Sgn, array.Neg, array.Switch, array.Eq, array.Neq, array.Lt, array.Le, array.Gt, array.Ge,
	array.And, array.Or, array.Xor, array.Invert, array.Mul, array.Add, array.Sub,
}

// An order is a function of two integers and two bools that depends on nothing but the order of the integers, their
// opposites, 0, 1 and -1. Such a function of integers of any size is known by its values for those of three bits: a map
// that keeps that order takes the smaller absolute value above 1 to 2, the larger one to 3, and the least integer, which
// is its own opposite, to -4. Each value is three bits, for each pair of integers in a word, and for each pair of bools
// a word.
type order struct {
	bits  [3][4]uint64
	bools bool // whether the type of the values is bool
}

// leafOrders are two integers, then two bools.
var leafOrders = func() (list [4]order) {
	for b, w := range []uint64{0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc, 0xf0f0f0f0f0f0f0f0, 0xff00ff00ff00ff00, 0xffff0000ffff0000, 0xffffffff00000000} {
		list[b/3].bits[b%3] = [4]uint64{w, w, w, w}
	}
	list[2] = order{[3][4]uint64{{0, ^uint64(0), 0, ^uint64(0)}}, true}
	list[3] = order{[3][4]uint64{{0, 0, ^uint64(0), ^uint64(0)}}, true}
	return list
}()

// orders are the functions of up to two integers and two bools.
var orders = &finite[order]{opens: opensOrder, leaves: orderLeaves, of: orderOf, number: orderNumber, forms: orderForms, most: 8}

// opensOrder reports whether a variable is computed from integers and bools by an operation on their order.
func opensOrder(v, root *variable) bool {
	if !orderable(v, root) { // most are floats
		return false
	}
	op, ok := elemOf(v.Owner())
	return ok && (op == array.Cast || slices.Contains(orderOps, op)) &&
		!slices.ContainsFunc(v.Owner().Inputs(), func(v *variable) bool { return !hasOrder(dtypeOf(v)) })
}

// orderable reports whether a variable has the shape of a root, and a type that can be one of orders.
func orderable(v, root *variable) bool {
	return hasOrder(dtypeOf(v)) && typeOf(v).With(array.Bool) == typeOf(root).With(array.Bool)
}

// hasOrder leaves out unsigned integers: the opposite of 1 is the largest one, not one of three bits.
func hasOrder(d array.DType) bool { return d == array.Bool || d.IsInteger() && !d.IsUnsigned() }

// orderLeaves leaves functions of bools that are bools to others.
func orderLeaves(root *variable, list []*variable) (of []order) {
	integers, bools := 0, 0
	var t tensor.Type
	for _, v := range list {
		if !orderable(v, root) {
			return nil
		}
		if dtypeOf(v) == array.Bool {
			of = append(of, leafOrders[2+min(bools, 1)])
			bools++
			continue
		}
		if integers > 0 && typeOf(v) != t {
			return nil
		}
		t = typeOf(v)
		of = append(of, leafOrders[min(integers, 1)])
		integers++
	}
	if integers > 2 || bools > 2 || integers == 0 && dtypeOf(root) == array.Bool {
		return nil
	}
	if integers > 0 && dtypeOf(root) != array.Bool && typeOf(root) != t {
		return nil
	}
	return of
}

func orderNumber(x float64, bools bool) (f order, ok bool) {
	f.bools = bools
	for b := range f.bits {
		if int(x)>>b&1 == 1 {
			f.bits[b] = [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
		}
	}
	return f, x == 0 || x == 1 || x == -1
}

// orderOf returns the function that an op computes of others. Not all sums, products and bits of integers are known.
func orderOf(op array.Opcode, args []order, bools bool) (f order, ok bool) {
	f.bools = bools
	logic := bools && op != array.Cast // of bools to the end
	for w := range 4 {
		word := func(i int) [3]uint64 { return [3]uint64{args[i].bits[0][w], args[i].bits[1][w], args[i].bits[2][w]} }
		x := word(0)
		known := ^uint64(0)
		switch op {
		case array.Cast:
			if bools {
				x = [3]uint64{nonzero(x)}
			}
		case array.Neg:
			x = minusOf(x)
		case array.Abs:
			x = choose(x[2], minusOf(x), x)
		case array.Sgn:
			x = [3]uint64{nonzero(x), x[2], x[2]}
		case array.Invert:
			if logic {
				x[0] = ^x[0]
			} else {
				known = ^nonzero(x) | equalTo(x, minusOne)
				x = [3]uint64{^x[0], ^x[1], ^x[2]}
			}
		case array.Switch:
			x = choose(nonzero(x), word(1), word(2))
		default:
			for i := range args[1:] {
				var ok uint64
				x, ok = orderOfTwo(op, x, word(i+1))
				known &= ok
			}
		}
		if known != ^uint64(0) {
			return f, false
		}
		for b := range f.bits {
			f.bits[b][w] = x[b]
		}
	}
	return f, true
}

var minusOne = [3]uint64{^uint64(0), ^uint64(0), ^uint64(0)}

// orderOfTwo returns what an op computes of two values, and where that is known.
func orderOfTwo(op array.Opcode, x, y [3]uint64) (_ [3]uint64, known uint64) {
	all, less, equal := ^uint64(0), lessThan(x, y), equalTo(x, y)
	zero := ^nonzero(x) | ^nonzero(y)
	switch op {
	case array.Maximum:
		return choose(less, y, x), all
	case array.Minimum:
		return choose(less, x, y), all
	case array.Eq:
		return [3]uint64{equal}, all
	case array.Neq:
		return [3]uint64{^equal}, all
	case array.Lt:
		return [3]uint64{less}, all
	case array.Le:
		return [3]uint64{less | equal}, all
	case array.Gt:
		return [3]uint64{^less &^ equal}, all
	case array.Ge:
		return [3]uint64{^less}, all
	case array.And:
		return [3]uint64{x[0] & y[0], x[1] & y[1], x[2] & y[2]}, zero | equal | equalTo(x, minusOne) | equalTo(y, minusOne)
	case array.Or:
		return [3]uint64{x[0] | y[0], x[1] | y[1], x[2] | y[2]}, zero | equal | equalTo(x, minusOne) | equalTo(y, minusOne)
	case array.Xor:
		return [3]uint64{x[0] ^ y[0], x[1] ^ y[1], x[2] ^ y[2]}, zero | equal
	case array.Sub:
		return orderOfTwo(array.Add, x, minusOf(y))
	case array.Add:
		opposed := equalTo(x, minusOf(y))
		return choose(opposed, [3]uint64{}, choose(nonzero(x), x, y)), zero | opposed
	}
	// A product is the other factor, its opposite or 0.
	unit := func(x [3]uint64) uint64 { return x[0] &^ (x[1] ^ x[2]) }
	product := choose(unit(x), choose(x[2], minusOf(y), y), choose(y[2], minusOf(x), x))
	return choose(zero, [3]uint64{}, product), zero | unit(x) | unit(y)
}

func nonzero(x [3]uint64) uint64 { return x[0] | x[1] | x[2] }
func equalTo(x, y [3]uint64) uint64 {
	return ^((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]))
}

func minusOf(x [3]uint64) [3]uint64 {
	return [3]uint64{x[0], x[1] ^ x[0], x[2] ^ (x[1] | x[0])}
}

func lessThan(x, y [3]uint64) uint64 {
	return x[2]&^y[2] | ^(x[2]^y[2])&(^x[1]&y[1]|^(x[1]^y[1])&^x[0]&y[0])
}

func choose(c uint64, x, y [3]uint64) [3]uint64 {
	return [3]uint64{c&x[0] | ^c&y[0], c&x[1] | ^c&y[1], c&x[2] | ^c&y[2]}
}

// orderForms has the functions that one or two ops compute.
var orderForms = sync.OnceValue(func() *formTable[order] {
	t := &orderTable{formTable: formTable[order]{index: make(map[order]int32, 1<<13)}}
	// Numbers come first, because other rules put them in the places of variables that have their value.
	for _, x := range []float64{0, 1, -1} {
		for _, bools := range []bool{false, true} {
			if f, _ := orderNumber(x, bools); x >= 0 || !bools {
				t.add(f, form{bools: bools, number: x})
			}
		}
	}
	t.numbers = int32(len(t.all))
	for _, f := range leafOrders {
		t.add(f, form{bools: f.bools})
	}
	t.known = []int32{0, int32(len(t.all))}
	for range 2 {
		t.grow()
	}
	return &t.formTable
})

// An orderTable is made by cost.
type orderTable struct {
	formTable[order]
	numbers int32   // the first ones
	known   []int32 // where those of each cost begin, then the number of all
}

// grow adds the functions of one op more.
func (t *orderTable) grow() {
	cost := len(t.known) - 1
	for a := t.known[cost-1]; a < t.known[cost]; a++ {
		if t.forms[a].bools {
			t.try(true, array.Invert, a)
			continue
		}
		t.try(false, array.Abs, a)
		t.try(false, array.Sgn, a)
	}
	for i := range cost {
		for a := t.known[i]; a < t.known[i+1]; a++ {
			for b := t.known[cost-1-i]; b < t.known[cost-i]; b++ {
				t.both(a, b)
			}
		}
	}
	for i := range cost {
		for j := range cost - i {
			for a := max(t.known[i], t.numbers); a < t.known[i+1]; a++ {
				if i > 0 && !t.forms[a].bools {
					continue // a comparison tells as much
				}
				for b := t.known[j]; b < t.known[j+1]; b++ {
					for c := t.known[cost-1-i-j]; c < t.known[cost-i-j]; c++ {
						if b != c {
							t.try(t.forms[b].bools && t.forms[c].bools, array.Switch, a, b, c)
						}
					}
				}
			}
		}
	}
	// A factor of -1 would move into a switch.
	for a := t.known[cost-1]; a < t.known[cost]; a++ {
		if t.forms[a].bools {
			t.try(false, array.Cast, a)
		}
		t.try(false, array.Neg, a)
	}
	t.known = append(t.known, int32(len(t.all)))
}

// both adds what ops of two arguments compute.
func (t *orderTable) both(a, b int32) {
	if a == b || a < t.numbers && b < t.numbers {
		return
	}
	compare := []array.Opcode{array.Eq, array.Neq, array.Lt, array.Le}
	if t.forms[a].bools && t.forms[b].bools {
		compare = []array.Opcode{array.And, array.Or, array.Xor, array.Eq, array.Lt, array.Le}
	} else {
		t.try(false, array.Maximum, a, b)
		t.try(false, array.Minimum, a, b)
	}
	for _, op := range compare {
		t.try(true, op, a, b)
	}
}

// try adds a form.
func (t *orderTable) try(bools bool, op array.Opcode, args ...int32) {
	var of [3]order
	as := form{op: op, cost: int8(len(t.known) - 1), bools: bools}
	for i, a := range args {
		of[i], as.args[i] = t.all[a], a
	}
	if f, ok := orderOf(op, of[:len(args)], bools); ok {
		t.add(f, as)
	}
}
