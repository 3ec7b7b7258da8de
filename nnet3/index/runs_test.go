package index_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3/index"
)

func format(k int, list []int32) string {
	return string(index.AppendRuns(nil, k, len(list)/k, func(i, j int) int32 { return list[i*k+j] }))
}

func parse(text string, least, k int) (list []int32, err error) {
	err = index.ParseRuns(text, least, k, func(tuple []int32) error {
		list = append(list, tuple...)
		return nil
	})
	return list, err
}

func TestRuns(t *testing.T) {
	const lo, hi = math.MinInt32, math.MaxInt32
	for text, list := range map[string][]int32{
		"":                           nil,
		"7":                          {7},
		"7 9":                        {7, 9},
		"0:3":                        {0, 1, 2},
		"5 0:3":                      {5, 0, 1, 2},
		"9:0:-3 9":                   {9, 6, 3, 9},
		"-1*3":                       {-1, -1, -1},
		"-2147483648 2147483647":     {lo, hi},
		"-2147483648*3":              {lo, lo, lo},
		"2147483645:2147483648":      {hi - 2, hi - 1, hi},
		"-2147483646:-2147483649:-1": {lo + 2, lo + 1, lo},
	} {
		if got := format(1, list); got != text {
			t.Errorf("%v: %q, want %q", list, got, text)
		}
		if got, err := parse(text, 1, 1); err != nil || !slices.Equal(got, list) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got := format(3, []int32{0, 5, 1, 2, 6, 1, 4, 7, 1}); got != "0:6:2/5:8/1" {
		t.Error(got)
	}
	if got := format(2, []int32{7, 1, 7, 1, 7, 1, 2, 2}); got != "7/1*3 2/2" {
		t.Error(got)
	}
	if got := format(2, []int32{0, 5, 1, 5, 0, 8, 1, 8, 0, 11, 1, 11, 0, 14, 1, 14, 9, 9}); got != "0:2/5+0/3*4 9/9" {
		t.Error(got)
	}
	if got := format(1, []int32{7, 7, 7, 8, 8, 8, 9, 9, 9, 1}); got != "7*3+1*3 1" {
		t.Error(got)
	}
	if got, err := parse("1/2 3:6", 1, 3); err != nil || !slices.Equal(got, []int32{1, 2, 0, 3, 0, 0, 4, 0, 0, 5, 0, 0}) {
		t.Error(got, err)
	}
	for _, text := range []string{"x", "1//2", "1/", "1/2/3", "1:", "1:1", "1:0", "1:4:0", "1:5:3", "0:5000", "1*0", "1*5000", "1:3*2", "1*x",
		"2147483648", "2147483640:2147483650", "0:3/0:4", "1:2:3:4", "9223372036854775807:1", "0:2+1/2/3*3", "0:2+x*3", "0:2+1*0", "0:2+1", "0:2+1*3000", "0:2+9999999999*3", "0:2+2147483647*2", "1:9223372036854775807", strings.Repeat("z", 1e4)} {
		if _, err := parse(text, 1, 2); !errors.Is(err, index.ErrRuns) || len(err.Error()) > 200 {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	stop := errors.New("stop")
	if err := index.ParseRuns("0:9", 1, 1, func([]int32) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// TestRunsOfAnything: what is written reads as the same list, whatever it holds.
func TestRunsOfAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		k := 1 + r.IntN(4)
		var list []int32
		for range r.IntN(8) {
			tuple, step, n := make([]int32, k), make([]int32, k), 1+r.IntN(9)
			for j := range k {
				tuple[j], step[j] = int32(r.Uint32()), int32(r.IntN(5)-2)
				if r.IntN(2) == 0 {
					tuple[j] = int32(r.IntN(9))
				}
			}
			for range n {
				list = append(list, tuple...)
				for j := range k {
					tuple[j] += step[j]
				}
			}
		}
		if got, err := parse(format(k, list), k, k); err != nil || !slices.Equal(got, list) {
			t.Fatalf("%d %v: %q: %v, %v", k, list, format(k, list), got, err)
		}
	}
	long := make([]int32, 3<<12)
	if got, err := parse(format(1, long), 1, 1); err != nil || len(got) != len(long) {
		t.Error(len(got), err)
	}
}
