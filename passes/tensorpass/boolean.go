package tensorpass

import (
	"slices"
	"sync"

	"github.com/nnopt/nnopt/tensor/array"
)

var logicRules = goRules{
	"local_boolean_function": {on(booleanOps...), nil, 0, booleans.transform},
	"local_order_function":   {on(orderOps...), nil, 0, orders.transform},
}

// booleanOps are those that are operations on truth values where their arguments are bools.
var booleanOps = []array.Opcode{
	array.And, array.Or, array.Xor, array.Invert, array.Eq, array.Neq, array.Lt, array.Le, array.Gt, array.Ge, array.Switch, array.Maximum, array.Minimum,
}

// A truth is a function of three truth values: bit i is its value where bit k of i is that of value k.
type truth uint8

// leafTruths are the three values themselves.
var leafTruths = [...]truth{0xaa, 0xcc, 0xf0}

// booleans are the functions of up to three bools.
var booleans = &finite[truth]{
	opens: opensTruth,
	leaves: func(root *variable, list []*variable) []truth {
		if len(list) > len(leafTruths) || slices.ContainsFunc(list, func(v *variable) bool { return v.Type() != root.Type() }) {
			return nil
		}
		return append([]truth{}, leafTruths[:len(list)]...)
	},
	of: func(op array.Opcode, args []truth, _ bool) (truth, bool) { return truthOf(op, args), true },
	number: func(x float64, _ bool) (truth, bool) {
		if x != 0 {
			return 255, true
		}
		return 0, true
	},
	forms: truthForms,
	most:  24,
}

// truthForms has the form of each function. None has a constant as an argument, which other rules would remove.
var truthForms = sync.OnceValue(func() *formTable[truth] {
	table := &formTable[truth]{index: make(map[truth]int32)}
	table.add(0, form{bools: true})
	table.add(255, form{bools: true, number: 1})
	known := [][]int32{nil} // by cost
	for _, f := range leafTruths {
		known[0] = append(known[0], int32(len(table.all)))
		table.add(f, form{bools: true})
	}
	for cost := 1; len(table.all) < 256; cost++ {
		known = append(known, nil)
		try := func(op array.Opcode, args ...int32) {
			var of [3]truth
			as := form{op: op, cost: int8(cost), bools: true}
			for i, a := range args {
				of[i], as.args[i] = table.all[a], a
			}
			if table.add(truthOf(op, of[:len(args)]), as) {
				known[cost] = append(known[cost], int32(len(table.all)-1))
			}
		}
		// The ops come in the order in which people like to read them.
		for _, op := range []array.Opcode{array.Invert, array.And, array.Or, array.Xor, array.Eq, array.Lt, array.Le, array.Switch} {
			for i := range cost {
				for _, a := range known[i] {
					if op == array.Invert && i == cost-1 {
						try(op, a)
					}
					for j := range cost - i {
						for _, b := range known[j] {
							if rest := cost - 1 - i - j; op == array.Switch {
								for _, c := range known[rest] {
									try(op, a, b, c)
								}
							} else if op != array.Invert && rest == 0 {
								try(op, a, b)
							}
						}
					}
				}
			}
		}
	}
	return table
})

// truthOf returns the function that an op computes of others.
func truthOf(op array.Opcode, args []truth) truth {
	f := args[0]
	switch op {
	case array.Invert:
		return ^f
	case array.Switch:
		return f&args[1] | ^f&args[2]
	}
	for _, g := range args[1:] {
		switch op {
		case array.And, array.Minimum:
			f &= g
		case array.Or, array.Maximum:
			f |= g
		case array.Xor, array.Neq:
			f ^= g
		case array.Eq:
			f = ^(f ^ g)
		case array.Lt:
			f = ^f & g
		case array.Le:
			f = ^f | g
		case array.Gt:
			f &^= g
		case array.Ge:
			f |= ^g
		}
	}
	return f
}

// opensTruth reports whether a variable is computed from others by an operation on truth values, some of which may be
// the numbers 0 and 1 of another type.
func opensTruth(v, root *variable) bool {
	op, ok := elemOf(v.Owner())
	return ok && dtypeOf(v) == array.Bool && v.Type() == root.Type() && slices.Contains(booleanOps, op) &&
		!slices.ContainsFunc(v.Owner().Inputs(), func(v *variable) bool {
			return dtypeOf(v) != array.Bool && !is(v, 0) && !is(v, 1)
		})
}
