package component

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/nnet3/index"
)

// errPrecomputed is wrapped by the errors of ParsePrecomputed.
var errPrecomputed = errors.New("bad precomputed indexes")

// PrecomputedText returns precomputed indexes as text that [ParsePrecomputed] reads. It reports
// false unless they are of a kind that optimizations make. All others follow from the indexes of
// the rows (see NonSimple).
func PrecomputedText(p Precomputed) (string, bool) {
	switch p := p.(type) {
	case *tdnnIndexes:
		b := fmt.Appendf(nil, "runs in=%d out=%d", p.InputRows, p.OutputRows)
		for _, runs := range p.Runs {
			b = append(b, " ["...)
			b = index.AppendRuns(b, 5, len(runs), func(i, j int) int32 {
				r := &runs[i]
				return [5]int32{r.Out, r.OutStep, r.In, r.InStep, r.Count}[j]
			})
			b = append(b, ']')
		}
		return string(b), true
	case *rowSets:
		b := fmt.Appendf(nil, "sets in=%d out=%d [", p.inRows, len(p.start)-1)
		b = index.AppendRuns(b, 1, len(p.start)-1, func(i, _ int) int32 { return p.start[i+1] - p.start[i] })
		b = append(b, "] ["...)
		b = index.AppendRuns(b, 1, len(p.rows), func(i, _ int) int32 { return p.rows[i] })
		return string(append(b, ']')), true
	}
	return "", false
}

// ParsePrecomputed returns the precomputed indexes that PrecomputedText wrote, and the numbers of
// rows of input and output that they are about. It calls claim before it allocates or visits as
// many rows, and ends with its error. Other errors wrap errPrecomputed.
func ParsePrecomputed(text string, claim func(rows int) error) (p Precomputed, inRows, outRows int, err error) {
	kind, rest, _ := strings.Cut(text, " ")
	words, err := wordsOf(rest)
	if err != nil || len(words) < 2 {
		return nil, 0, 0, fmt.Errorf("%w: %q", errPrecomputed, fileio.Excerpt(text, 0))
	}
	for i, n := range []*int{&inRows, &outRows} {
		digits, _ := strings.CutPrefix(words[i], [2]string{"in=", "out="}[i])
		rows, err := strconv.ParseUint(digits, 10, 31)
		if err != nil {
			return nil, 0, 0, fmt.Errorf("%w: a number of rows: %q", errPrecomputed, fileio.Excerpt(words[i], 0))
		}
		*n = int(rows)
	}
	if err := claim(outRows); err != nil {
		return nil, 0, 0, err
	}
	switch lists := words[2:]; {
	case kind == "runs":
		p, err = parseTdnnIndexes(lists, inRows, outRows, claim)
	case kind == "sets" && len(lists) == 2:
		p, err = parseRowSets(lists, inRows, outRows, claim)
	default:
		err = fmt.Errorf("%w: %q", errPrecomputed, fileio.Excerpt(text, 0))
	}
	return p, inRows, outRows, err
}

func parseTdnnIndexes(lists []string, inRows, outRows int, claim func(int) error) (Precomputed, error) {
	x := &tdnnIndexes{Runs: make([][]run, len(lists)), InputRows: inRows, OutputRows: outRows}
	for i, list := range lists {
		if err := claim(outRows); err != nil {
			return nil, err
		}
		covered, left := make([]bool, outRows), outRows
		err := index.ParseRuns(strings.Trim(list, "[]"), 5, 5, func(t []int32) error {
			r := run{t[0], t[1], t[2], t[3], t[4]}
			if !r.fits(inRows, outRows) || int(r.Count) > left {
				return fmt.Errorf("%w: run %v of block %d is outside of the rows", errPrecomputed, t, i)
			}
			for k := range r.Count {
				if at := &covered[r.Out+k*r.OutStep]; *at {
					return fmt.Errorf("%w: block %d has two inputs for an output row", errPrecomputed, i)
				} else {
					*at = true
				}
			}
			left -= int(r.Count)
			x.Runs[i] = append(x.Runs[i], r)
			return claim(1)
		})
		if err == nil && left > 0 {
			err = fmt.Errorf("%w: block %d has no input for %d output rows", errPrecomputed, i, left)
		}
		if err != nil {
			return nil, err
		}
	}
	return x, nil
}

// fits reports whether a run is inside of a number of rows.
func (r run) fits(inRows, outRows int) bool {
	inside := func(first, step int32, rows int) bool {
		last := int64(first) + int64(r.Count-1)*int64(step)
		return first >= 0 && step >= 0 && last < int64(rows)
	}
	return r.Count > 0 && (r.OutStep > 0 || r.Count == 1) && inside(r.Out, r.OutStep, outRows) && inside(r.In, r.InStep, inRows)
}

func parseRowSets(lists []string, inRows, outRows int, claim func(int) error) (Precomputed, error) {
	s := &rowSets{start: make([]int32, 1, outRows+1), inRows: inRows}
	var total int32
	err := index.ParseRuns(strings.Trim(lists[0], "[]"), 1, 1, func(t []int32) error {
		if total += t[0]; t[0] < 1 || total < 0 || len(s.start) > outRows {
			return fmt.Errorf("%w: a set has at least one row", errPrecomputed)
		}
		s.start = append(s.start, total)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = index.ParseRuns(strings.Trim(lists[1], "[]"), 1, 1, func(t []int32) error {
		if t[0] < 0 || int(t[0]) >= inRows {
			return fmt.Errorf("%w: there is no input row %d", errPrecomputed, t[0])
		}
		s.rows = append(s.rows, t[0])
		return claim(1)
	})
	if err == nil && (len(s.start) != outRows+1 || len(s.rows) != int(total)) {
		err = fmt.Errorf("%w: the sets of %d rows have %d rows in total, not %d", errPrecomputed, outRows, len(s.rows), total)
	}
	return s, err
}
