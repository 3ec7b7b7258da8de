package expr

import (
	"maps"
	"slices"

	"github.com/nnopt/nnopt/tensor/array"
)

// ParseType is exported for tests.
var ParseType = parseType

// LanguageNames returns the names of all functions and of all ops. Ops have parameters of every
// kind that they accept.
func LanguageNames() []string {
	names := slices.Sorted(maps.Keys(listFunctions))
	for _, t := range tables {
		names = append(names, slices.Sorted(maps.Keys(t))...)
	}
	ops := slices.Sorted(maps.Keys(ops))
	for o := range array.NumOpcodes {
		ops = append(ops, o.String())
	}
	for r := range array.NumReductions {
		ops = append(ops, r.String())
	}
	for _, op := range ops {
		for _, params := range []string{"", "{0}", "{1}", "{2}", "{8}", "{axis=0}", "{axis=0,1}", "{axis=7}", "{}", "{1,0}", "{x,0,x}", "{1:}", "{_}", "{::-1,_:_}", "{inplace}", "{0}{inplace}", "{1:}{inplace}",
			"{inplace=0}", "{inplace=7}", "{float32}", "{int64}", "{bool}{inplace=0}", "{[?, 3]}", "{[3]}", "{a}", "{-1}", "{0,0,1}", "{-1,1,0}"} {
			if _, ok := Op(op + params); ok {
				names = append(names, op+params)
			}
		}
	}
	return names
}
