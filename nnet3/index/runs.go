package index

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

// errRuns is wrapped by the errors of [ParseRuns].
var errRuns = errors.New("bad list of numbers")

// maxRun is the most tuples in a run, so that a short text can't be a very long list.
const maxRun = 1 << 12

// AppendRuns appends a list of tuples of k numbers as text: at returns number j of tuple i. A run
// of tuples at equal distances is written by its coordinates, joined by slashes, and a coordinate
// by its first number, the end and the distance: 0:6:2/5:8/1 is (0, 5, 1), (2, 6, 1) and (4, 7, 1).
// Equal tuples are counted: 7/1*3. A run that is repeated, moved by the same distances each time,
// is followed by these and by the number of times: 0:2/5+0/3*4 is (0, 5), (1, 5), (0, 8), (1, 8),
// and so on up to (1, 14). Runs are separated by spaces.
func AppendRuns(dst []byte, k, n int, at func(i, j int) int32) []byte {
	for i := 0; i < n; {
		if i > 0 {
			dst = append(dst, ' ')
		}
		// Runs are found greedily from the left. A run of two that is not repeated is longer as a
		// run than as two tuples.
		length, times := 1, 1
		if end := runEnd(k, i, n, at); end > i+1 {
			length = end - i
			times = repeats(k, i, n, length, at)
			if times == 1 && length == 2 {
				length = 1 // a run of two saves nothing
			}
		}
		dst = appendRun(dst, k, i, length, at)
		if times > 1 {
			for j := range k {
				dst = append(dst, "+/"[min(j, 1)])
				dst = strconv.AppendInt(dst, int64(at(i+length, j))-int64(at(i, j)), 10)
			}
			dst = append(dst, '*')
			dst = strconv.AppendInt(dst, int64(times), 10)
		}
		i += length * times
	}
	return dst
}

// appendRun appends the run of length tuples from tuple i on.
func appendRun(dst []byte, k, i, length int, at func(i, j int) int32) []byte {
	counted := length > 1
	for j := range k {
		if j > 0 {
			dst = append(dst, '/')
		}
		first := int64(at(i, j))
		dst = strconv.AppendInt(dst, first, 10)
		if length == 1 || at(i+1, j) == at(i, j) {
			continue
		}
		counted = false
		step := int64(at(i+1, j)) - first
		dst = append(dst, ':')
		dst = strconv.AppendInt(dst, first+int64(length)*step, 10)
		if step != 1 {
			dst = append(dst, ':')
			dst = strconv.AppendInt(dst, step, 10)
		}
	}
	if counted {
		dst = append(dst, '*')
		dst = strconv.AppendInt(dst, int64(length), 10)
	}
	return dst
}

// runEnd returns the end of the run that begins with tuple i.
func runEnd(k, i, n int, at func(i, j int) int32) int {
	end := i + 1
	for end < n && end-i < maxRun && (end == i+1 || evenly(k, end, at)) {
		end++
	}
	return end
}

// evenly reports whether tuple i is as far from the one before as that from its predecessor.
func evenly(k, i int, at func(i, j int) int32) bool {
	for j := range k {
		a, b, c := int64(at(i-2, j)), int64(at(i-1, j)), int64(at(i, j))
		if c-b != b-a {
			return false
		}
	}
	return true
}

// repeats returns how often the run from tuple i on is there, moved by the same distances each
// time. It is 1 for two times, since writing them as repetitions would save nothing.
func repeats(k, i, n, length int, at func(i, j int) int32) int {
	times := 1
	for end := i + 2*length; end <= n && end-i <= maxRun; end += length {
		for t := end - length; t < end; t++ {
			for j := range k {
				by := int64(at(i+length, j)) - int64(at(i, j))
				if int64(at(t, j))-int64(at(t-length, j)) != by {
					if times < 3 {
						return 1
					}
					return times
				}
			}
		}
		times++
	}
	if times < 3 {
		return 1
	}
	return times
}

// ParseRuns reads what [AppendRuns] writes, and calls add for every tuple, which is valid during
// the call. The last of the k numbers may be missing down to least of them; they are 0 then. It
// ends at the first error of add. The error wraps errRuns if the text is no list.
func ParseRuns(text string, least, k int, add func(tuple []int32) error) error {
	r := &runText{least: least, first: make([]int64, k), step: make([]int64, k), move: make([]int64, k)}
	tuple := make([]int32, k)
	for rest := strings.TrimSpace(text); rest != ""; {
		var run string
		run, rest, _ = strings.Cut(rest, " ")
		if err := r.parse(run); err != nil {
			return fmt.Errorf("%w: %w", errRuns, err)
		}
		for m := range r.times {
			for i := range r.length {
				for j := range tuple {
					tuple[j] = int32(r.first[j] + int64(i)*r.step[j] + int64(m)*r.move[j])
				}
				if err := add(tuple); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// runText is a run in the text, with its repetitions.
type runText struct {
	least             int
	first, step, move []int64 // by coordinate
	length, times     int
}

func (r *runText) parse(text string) error {
	fault := fmt.Errorf("%q is not a run of numbers", fileio.Excerpt(text, 0))
	run, moves, repeated := strings.Cut(text, "+")
	if err := r.parseRun(run); err != nil {
		return err
	}
	clear(r.move)
	r.times = 1
	if repeated {
		list, count, _ := strings.Cut(moves, "*")
		parts := strings.Split(list, "/")
		if len(parts) > len(r.move) {
			return fault
		}
		for j, p := range parts {
			var err error
			if r.move[j], err = strconv.ParseInt(p, 10, 64); err != nil || r.move[j] > 1<<33 || r.move[j] < -1<<33 {
				return fault
			}
		}
		// A few digits must not stand for more tuples than a run may have.
		n, err := strconv.ParseUint(count, 10, 32)
		if err != nil || n < 1 || int(n) > maxRun/r.length {
			return fault
		}
		r.times = int(n)
	}
	for j := range r.first {
		along, across := int64(r.length-1)*r.step[j], int64(r.times-1)*r.move[j]
		// Coordinates are linear in both counters, so the corners are the extremes: if they are 32
		// bits wide, so is all between. The first corner was parsed as such.
		for _, x := range [...]int64{r.first[j] + along, r.first[j] + across, r.first[j] + along + across} {
			if x != int64(int32(x)) {
				return fault
			}
		}
	}
	return nil
}

// parseRun reads a run without its repetitions.
func (r *runText) parseRun(run string) error {
	fault := fmt.Errorf("%q is not a run of numbers", fileio.Excerpt(run, 0))
	clear(r.first)
	clear(r.step)
	coordinates, count, counted := strings.Cut(run, "*")
	parts := strings.Split(coordinates, "/")
	if len(parts) < r.least || len(parts) > len(r.first) {
		return fmt.Errorf("%q has %d numbers in a tuple, not %d", fileio.Excerpt(run, 0), len(parts), len(r.first))
	}
	n := int64(0)
	for j, p := range parts {
		a, b, ranged := strings.Cut(p, ":")
		var err error
		if r.first[j], err = strconv.ParseInt(a, 10, 32); err != nil {
			return fault
		}
		if !ranged {
			continue
		}
		end, by, stepped := strings.Cut(b, ":")
		r.step[j] = 1
		if stepped {
			if r.step[j], err = strconv.ParseInt(by, 10, 64); err != nil || r.step[j] == 0 || r.step[j] > 1<<33 || r.step[j] < -1<<33 {
				return fault
			}
		}
		last, err := strconv.ParseInt(end, 10, 64)
		if err != nil || last > 1<<50 || last < -1<<50 || (last-r.first[j])%r.step[j] != 0 {
			return fault
		}
		m := (last - r.first[j]) / r.step[j]
		if m < 1 || m > maxRun || n > 0 && n != m {
			return fault
		}
		n = m
	}
	if counted {
		m, err := strconv.ParseUint(count, 10, 32)
		if err != nil || n > 0 || m < 1 || m > maxRun {
			return fault
		}
		n = int64(m)
	}
	r.length = max(int(n), 1)
	return nil
}
