package tool

import (
	"flag"
	"fmt"
	"math"
	"strconv"
)

// maxFrames bounds flags that count frames or sequences. The libraries check narrower
// bounds.
const maxFrames = 1 << 24

// ranges gives the bounds of each integer flag, for all verbs. The libraries check what they need
// themselves, since they have other callers. A flag is checked as well, so that a mistyped number is
// reported at once, by the name of the flag, and not after a model of a gigabyte was read.
var ranges = map[string][2]int{
	"compiler.cache-capacity":               {0, 1 << 20},
	"compression-method":                    {1, 7},
	"extra-left-context":                    {0, maxFrames},
	"extra-left-context-initial":            {-1, maxFrames},
	"extra-right-context":                   {0, maxFrames},
	"extra-right-context-final":             {-1, maxFrames},
	"frame-subsampling-factor":              {1, maxFrames},
	"frames-per-chunk":                      {1, maxFrames},
	"max-streams":                           {0, 64},
	"max-rewrites":                          {-1, math.MaxInt32}, // -1 for no limit
	"minibatch-size":                        {0, 1024},
	"num-sequences":                         {1, maxFrames},
	"online-ivector-period":                 {0, maxFrames},
	"packet":                                {1, maxFrames},
	"run":                                   {0, 1e6},
	"runs":                                  {1, 1e6},
	"streams":                               {1, 1 << 16},
	"width":                                 {0, 2 * widestSide},
	"workers":                               {0, 4096}, // each has a workspace of its own
	"optimization.min-deriv-time":           {math.MinInt32, math.MaxInt32},
	"optimization.max-deriv-time":           {math.MinInt32, math.MaxInt32},
	"optimization.max-deriv-time-relative":  {math.MinInt32, math.MaxInt32},
	"optimization.memory-compression-level": {0, 2},
}

// bound makes flags refuse values out of range.
func bound(fs *flag.FlagSet) {
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

// real is the value of a flag for a number between least and most.
type real struct {
	v           *float64
	least, most float64
}

// String returns the number.
func (r real) String() string {
	if r.v == nil {
		return ""
	}
	return strconv.FormatFloat(*r.v, 'g', -1, 64)
}

// Set sets the number if it is in range.
func (r real) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= r.least && x <= r.most) {
		return fmt.Errorf("not a number between %g and %g", r.least, r.most)
	}
	*r.v = x
	return nil
}
