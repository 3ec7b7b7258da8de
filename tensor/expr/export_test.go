package expr

import (
	"maps"
	"slices"
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
	ops := Default().Names()
	for _, op := range ops {
		for _, params := range []string{"", "{0}", "{1}", "{2}", "{8}", "{axis=0}", "{axis=0,1}", "{axis=7}", "{}", "{1,0}", "{x,0,x}", "{1:}", "{_}", "{::-1,_:_}", "{inplace}", "{0}{inplace}", "{1:}{inplace}",
			"{inplace=0}", "{inplace=7}", "{float32}", "{int64}", "{bool}{inplace=0}", "{[?, 3]}", "{[3]}", "{a}", "{-1}", "{0,0,1}", "{-1,1,0}", "{half_pixel}", "{asymmetric}{floor}",
			"{1}{strides=2}{pads=0,1}{groups=3}", "{2}{dilations=1,2}{pads=0,-1,1,0}", "{2,1}{strides=2,1}{ceil}"} {
			if _, ok := Default().Op(op + params); ok {
				names = append(names, op+params)
			}
		}
	}
	return names
}
