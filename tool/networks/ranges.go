package networks

import (
	"fmt"
	"math"
	"strconv"
)

// maxFrames bounds flags that count frames or sequences. The libraries check narrower
// bounds.
const maxFrames = 1 << 24

// ranges gives the bounds of integer flags.
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
	"minibatch-size":                        {0, 1024},
	"num-sequences":                         {1, maxFrames},
	"online-ivector-period":                 {0, maxFrames},
	"packet":                                {1, maxFrames},
	"streams":                               {1, 1 << 16},
	"width":                                 {0, 2 * widestSide},
	"workers":                               {0, 4096}, // each has a workspace of its own
	"optimization.min-deriv-time":           {math.MinInt32, math.MaxInt32},
	"optimization.max-deriv-time":           {math.MinInt32, math.MaxInt32},
	"optimization.max-deriv-time-relative":  {math.MinInt32, math.MaxInt32},
	"optimization.memory-compression-level": {0, 2},
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
