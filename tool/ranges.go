package tool

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"strconv"
)

// ranges gives the bounds of integer flags, as Dialect.Ranges does for those of a dialect. The
// libraries check what they need themselves, since they have other callers. A flag is checked as
// well, so that a mistyped number is reported at once, by the name of the flag, and not after a model
// of a gigabyte was read.
var ranges = map[string][2]int{
	"draws":        {0, 1e6},
	"max-rewrites": {-1, math.MaxInt32}, // -1 for no limit
	"run":          {0, 1e6},
	"runs":         {1, 1e6},
	"size":         {1, 8}, // of terms, of which there are thousands with 3 ops
	"most":         {0, 10000},
	"threads":      {0, 1 << 10},
}

// Ranges returns the bounds of integer flags by name: those of all dialects, and those of flags that verbs share.
func (cfg *Config) Ranges() map[string][2]int {
	all := maps.Clone(ranges)
	for _, d := range cfg.Dialects {
		maps.Copy(all, d.Ranges)
	}
	return all
}

// bound makes flags refuse values out of range.
func (cfg *Config) bound(fs *flag.FlagSet) {
	ranges := cfg.Ranges()
	fs.VisitAll(func(f *flag.Flag) {
		if r, ok := ranges[f.Name]; ok {
			f.Value = bounded{f.Value, r[0], r[1]}
		}
	})
}

// bounded is the value of a flag for an integer between least and most.
type bounded struct {
	flag.Value
	least, most int
}

// Set sets the number if it is in range.
func (b bounded) Set(text string) error {
	if n, err := strconv.ParseInt(text, 0, strconv.IntSize); err != nil || int(n) < b.least || int(n) > b.most {
		return fmt.Errorf("not an integer between %d and %d", b.least, b.most)
	}
	return b.Value.Set(text)
}
