package component

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/nnet3/index"
)

func TestFindRuns(t *testing.T) {
	for _, c := range []struct {
		rows []int32
		want int // runs
	}{
		{nil, 0},
		{[]int32{5}, 1},
		{[]int32{0, 1, 2, 3}, 1},
		{[]int32{0, 3, 6, 9}, 1},
		{[]int32{-1, -1, 4, 5, 6, -1}, 1},
		{[]int32{4, 5, -1, 6, 7}, 2},
		{[]int32{0, 1, 6, 7, 12, 13, 18, 19}, 2},        // two sequences at every third time
		{[]int32{0, 1, 2, 9, 10, 11}, 2},                // three sequences, two times
		{[]int32{3, 2, 1, 0}, 4},                        // backwards
		{[]int32{7, 0, 5, 1}, 3},                        // no order
		{[]int32{0, 10, 1, 11, 2, 12, 3, 13, 4, 14}, 2}, // sequence by sequence into time by time
		{[]int32{0, 1, 5, 6, 7, 20, 21, 22, 23, 40}, 4},
	} {
		runs := findRuns(c.rows)
		if len(runs) != c.want {
			t.Errorf("%v: %d runs: %v", c.rows, len(runs), runs)
		}
		checkRuns(t, c.rows, runs)
	}
	rnd := rand.New(rand.NewPCG(2, 1))
	for range 300 {
		rows := make([]int32, rnd.IntN(30))
		row := int32(0)
		for i := range rows {
			row += int32(rnd.IntN(4))
			rows[i] = row
			if rnd.IntN(6) == 0 {
				rows[i] = -1
			}
		}
		checkRuns(t, rows, findRuns(rows))
	}
}

// checkRuns fails unless the runs describe rows.
func checkRuns(t *testing.T, rows []int32, runs []run) {
	t.Helper()
	got := make([]int32, len(rows))
	for i := range got {
		got[i] = -1
	}
	for _, r := range runs {
		for k := range r.Count {
			out := r.Out + k*r.OutStep
			if got[out] != -1 {
				t.Fatalf("%v: output row %d is in two runs: %v", rows, out, runs)
			}
			got[out] = r.In + k*r.InStep
		}
	}
	for i, r := range rows {
		if got[i] != r {
			t.Fatalf("%v: the runs say %v", rows, got)
		}
	}
}

// TestTdnnRuns checks that a TDNN finds its inputs in few runs, for all regular orders of the rows.
func TestTdnnRuns(t *testing.T) {
	c := newComponent(t, "TdnnComponent", "input-dim=2 output-dim=2 time-offsets=-1,0,1", nil).(*tdnnComponent)
	const times, sequences = 20, 4
	orders := map[string]func(first, last, step int32) []index.Index{
		"time first": func(first, last, step int32) (list []index.Index) {
			for t := first; t <= last; t += step {
				for n := range int32(sequences) {
					list = append(list, index.Index{N: n, T: t})
				}
			}
			return list
		},
		"sequence first": func(first, last, step int32) (list []index.Index) {
			for n := range int32(sequences) {
				for t := first; t <= last; t += step {
					list = append(list, index.Index{N: n, T: t})
				}
			}
			return list
		},
	}
	for inName, in := range orders {
		for outName, out := range orders {
			for _, step := range []int32{1, 3} {
				pre, err := c.PrecomputeIndexes(in(-1, times, 1), out(0, times-1, step), true)
				if err != nil {
					t.Fatal(err)
				}
				for o, runs := range pre.(*tdnnIndexes).Runs {
					if len(runs) > sequences {
						t.Errorf("%s to %s, every %d: offset %d takes %d runs", inName, outName, step, o, len(runs))
					}
				}
			}
		}
	}
	if _, err := c.PrecomputeIndexes([]index.Index{{T: 0}, {T: 1}}, []index.Index{{T: 0}}, false); !errors.Is(err, ErrShape) {
		t.Errorf("a missing input: error %v", err)
	}
	twice := []index.Index{{T: 0}, {T: 0}}
	if _, err := c.PrecomputeIndexes([]index.Index{{T: -1}, {T: 0}, {T: 1}}, twice, false); !errors.Is(err, ErrShape) {
		t.Errorf("an output that appears twice: error %v", err)
	}
}

// TestIndexesDoNotOverflow checks that times at the limits of an index neither wrap around nor
// saturate, which would make them the time of another row.
func TestIndexesDoNotOverflow(t *testing.T) {
	const last = 1<<31 - 1
	for typ, config := range map[string]string{
		"TdnnComponent":                  "input-dim=2 output-dim=2 time-offsets=-3,3",
		"StatisticsExtractionComponent":  "input-dim=3 input-period=2 output-period=6",
		"StatisticsPoolingComponent":     "input-dim=3 left-context=3 right-context=3",
		"RestrictedAttentionComponent":   "key-dim=1 value-dim=1 time-stride=7 num-left-inputs=3 num-right-inputs=3",
		"TimeHeightConvolutionComponent": "num-filters-in=1 num-filters-out=1 height-in=1 height-out=1 time-offsets=-3,3 height-offsets=0",
	} {
		c := newComponent(t, typ, config, nil).(NonSimple)
		for _, at := range []int32{last, last - 1, -last, index.NoTime + 2} {
			for _, x := range c.InputIndexes(index.Index{T: at}, nil) {
				if x.T != index.NoTime && (at > 0) != (x.T > 0) {
					t.Errorf("%s: the output at %d wants the input at %d", typ, at, x.T)
				}
			}
		}
	}
	c := newComponent(t, "TdnnComponent", "input-dim=2 output-dim=2 time-offsets=-3,3", nil).(NonSimple)
	for _, at := range []int32{last, -last} {
		if c.IsComputable(index.Index{T: at}, func(x index.Index) bool { return x.T != index.NoTime }, nil) {
			t.Errorf("the output at %d can be computed from all inputs there may be", at)
		}
	}
}

// TestRequiredOffsets checks that a missing input at a required time offset is an error, in
// whatever order a file lists the required offsets.
func TestRequiredOffsets(t *testing.T) {
	c, err := readText("<TimeHeightConvolutionComponent> <LearningRate> 1 <Model> <ConvolutionModel> <NumFiltersIn> 1 <NumFiltersOut> 1 " +
		"<HeightIn> 1 <HeightOut> 1 <HeightSubsampleOut> 1 <Offsets> [ -1,0 0,0 1,0 2,0 ]\n<RequiredTimeOffsets> [ 1 0 -1 ]\n</ConvolutionModel> " +
		"<LinearParams> [ 1 2 3 4 ]\n<BiasParams> [ 0 ]\n<MaxMemoryMb> 1 <UseNaturalGradient> T <NumMinibatchesHistory> 4 <AlphaInOut> 4 4 <RankInOut> 1 1 </TimeHeightConvolutionComponent>")
	if err != nil {
		t.Fatal(err)
	}
	out := []index.Index{{T: 0}}
	for missing := int32(-1); missing <= 2; missing++ {
		var in []index.Index
		for time := int32(-1); time <= 2; time++ {
			if time != missing {
				in = append(in, index.Index{T: time})
			}
		}
		_, err := c.(NonSimple).PrecomputeIndexes(in, out, false)
		if required := missing < 2; required != errors.Is(err, ErrShape) {
			t.Errorf("without the input at %d: error %v", missing, err)
		}
	}
}
