package component

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
)

// TestStoreStats checks that the statistics of several minibatches are those of all rows.
func TestStoreStats(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	in := randomMatrix(rnd, 12, 6)
	w := &Workspace{}
	bn := newComponent(t, "BatchNormComponent", "dim=6 block-dim=3", nil).(*batchNorm)
	relu := newComponent(t, "RectifiedLinearComponent", "dim=6", nil).(*nonlinearity)
	for _, part := range [][2]int{{0, 5}, {5, 1}, {6, 6}} {
		x, y := kernel.Rows(in, part[0], part[1]), kernel.New(part[1], 6)
		memo, err := Propagate(bn, w, ForwardPass{}, x, y)
		if err != nil {
			t.Fatal(err)
		}
		bn.StoreStats(x, y, memo)
		if _, err := Propagate(relu, w, ForwardPass{}, x, y); err != nil {
			t.Fatal(err)
		}
		relu.StoreStats(kernel.Matrix{}, y, nil)
	}
	if bn.count != 24 || relu.count != 12 {
		t.Fatalf("counts %g and %g", bn.count, relu.count)
	}
	for j := range 3 {
		var sum, sumsq float64
		for i := range in.Rows {
			for _, v := range []float32{kernel.Row(in, i)[j], kernel.Row(in, i)[j+3]} {
				sum += float64(v)
				sumsq += float64(v) * float64(v)
			}
		}
		mean := sum / 24
		variance := sumsq/24 - mean*mean
		if math.Abs(bn.mean[j]-mean) > 1e-6 || math.Abs(bn.variance[j]-variance) > 1e-5 {
			t.Errorf("column %d: mean %g and variance %g, want %g and %g", j, bn.mean[j], bn.variance[j], mean, variance)
		}
	}
	for j := range 6 {
		var sum, on float64
		for i := range in.Rows {
			if v := kernel.Row(in, i)[j]; v > 0 {
				sum += float64(v)
				on++
			}
		}
		if math.Abs(relu.valueSum[j]-sum) > 1e-5 || relu.derivSum[j] != on {
			t.Errorf("column %d: sum %g and %g positive, want %g and %g", j, relu.valueSum[j], relu.derivSum[j], sum, on)
		}
	}
	relu.ZeroStats()
	if relu.count != 0 || relu.valueSum[0] != 0 {
		t.Error("statistics are not forgotten")
	}
}

// TestBatchNormModes checks that BatchNorm computes the same in test mode as in training, with the
// statistics of the same minibatch.
func TestBatchNormModes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 1))
	in := randomMatrix(rnd, 100, 6)
	kernel.AddRow(in, 1, []float32{0, 1, 2, 3, -1, 100})
	c := newComponent(t, "BatchNormComponent", "dim=6 target-rms=0.5", nil).(*batchNorm)
	w := &Workspace{}
	train, test := kernel.New(100, 6), kernel.New(100, 6)
	memo, err := Propagate(c, w, ForwardPass{}, in, train)
	if err != nil {
		t.Fatal(err)
	}
	if c.scale != nil || !c.Properties().Has(UsesMemo|StoresStats) {
		t.Error("in training there is a scale, or no memo")
	}
	c.StoreStats(in, train, memo)
	c.SetTestMode(true)
	if len(c.scale) != 6 || len(c.offset) != 6 || c.Properties().Has(UsesMemo) || c.Properties().Has(StoresStats) {
		t.Error("in test mode there is no scale, or a memo")
	}
	memo, err = Propagate(c, w, ForwardPass{}, in, test)
	if err != nil || memo != nil {
		t.Fatalf("memo %v, error %v", memo, err)
	}
	if !near(train, test, 1e-3) {
		t.Error("training and test disagree")
	}
	c.ZeroStats()
	if c.count == 0 {
		t.Error("statistics that are in use were forgotten")
	}
}

// TestSelfRepair checks that saturated units are pushed towards the middle and healthy ones are
// not.
func TestSelfRepair(t *testing.T) {
	const rows = 4
	dy := kernel.New(rows, 2)
	for _, c := range []struct {
		text string
		y    float32 // output of both units
		push float32 // on the first, times 1e-3
	}{
		{"<SigmoidComponent> <Dim> 2 <ValueAvg> [ 1 0.5 ]\n<DerivAvg> [ 0.01 0.2 ]\n<Count> 100 <SelfRepairScale> 0.001 </SigmoidComponent>", 0.9, -0.8},
		{"<TanhComponent> <Dim> 2 <ValueAvg> [ -1 0 ]\n<DerivAvg> [ 0.1 0.9 ]\n<Count> 100 <SelfRepairScale> 0.001 </TanhComponent>", -0.8, 0.8},
		{"<RectifiedLinearComponent> <Dim> 2 <ValueAvg> [ 0 1 ]\n<DerivAvg> [ 0.01 0.5 ]\n<Count> 100 <SelfRepairScale> 0.001 </RectifiedLinearComponent>", 0, 1},
		{"<RectifiedLinearComponent> <Dim> 2 <ValueAvg> [ 9 1 ]\n<DerivAvg> [ 0.99 0.5 ]\n<Count> 100 <SelfRepairScale> 0.001 </RectifiedLinearComponent>", 5, -1},
	} {
		comp, err := readText(c.text)
		if err != nil {
			t.Fatal(err)
		}
		y, dx := kernel.New(rows, 2), kernel.New(rows, 2)
		kernel.Fill(y, c.y)
		to := NewGradient(comp)
		if err := Backprop(comp.(Backpropper), new(Workspace), BackwardPass{OutValue: y, OutDeriv: dy, ToUpdate: to, InDeriv: dx}); err != nil {
			t.Fatal(err)
		}
		if dx.Data[1] != 0 {
			t.Errorf("%s: a healthy unit was repaired", comp.Type())
		}
		if want := c.push * 0.001; math.Abs(float64(dx.Data[0]-want)) > 1e-6 {
			t.Errorf("%s: pushed by %g, want %g", comp.Type(), dx.Data[0], want)
		}
	}
}

// TestMasks checks the means, the extremes and the sharing of masks.
func TestMasks(t *testing.T) {
	for _, c := range []struct {
		typ, config string
		mean        float64
		values      []float32 // nil: many
	}{
		{"DropoutComponent", "dim=4 dropout-proportion=0.25", 0.75, []float32{0, 1}},
		{"DropoutComponent", "dim=4 dropout-proportion=0.25 dropout-per-frame=true", 0.75, []float32{0, 1}},
		{"GeneralDropoutComponent", "dim=4 dropout-proportion=0.2 time-period=1", 1, []float32{0, 1.25}},
		{"GeneralDropoutComponent", "dim=4 dropout-proportion=0.2 time-period=1 continuous=true", 1, nil},
		{"GeneralDropoutComponent", "dim=20 dropout-proportion=0 time-period=1 specaugment-max-proportion=0.5 specaugment-max-regions=3", 0.75, []float32{0, 1}},
		{"SpecAugmentTimeMaskComponent", "dim=2 zeroed-proportion=0.25 time-mask-max-frames=3", 0.75, []float32{0, 1}},
		{"DropoutMaskComponent", "output-dim=4 dropout-proportion=0.3", 0.7, []float32{0, 1}},
		{"DropoutMaskComponent", "output-dim=2 dropout-proportion=0.3", 0.7, []float32{0, 1}},
		{"DropoutMaskComponent", "output-dim=2 dropout-proportion=0.3 continuous=true", 1, nil},
	} {
		k := newCase(t, c.typ, c.config)
		kernel.Fill(k.in, 1)
		w := &Workspace{}
		sum, count := 0.0, 0
		for range 400 {
			y := k.empty()
			if _, err := Propagate(k.c, w, ForwardPass{Pre: k.pre}, k.in, y); err != nil {
				t.Fatal(err)
			}
			for i := range y.Rows {
				row := kernel.Row(y, i)
				if c.values != nil {
					for _, v := range row {
						if v != c.values[0] && v != c.values[1] {
							t.Fatalf("%s %s: a factor of %g", c.typ, c.config, v)
						}
					}
				}
				if c.typ == "DropoutMaskComponent" && len(row) == 2 && row[0] == 0 && row[1] == 0 {
					t.Fatal("both columns are zero")
				}
				sum += float64(kernel.Sum(row))
				count += len(row)
			}
		}
		if mean := sum / float64(count); math.Abs(mean-c.mean) > 0.03 {
			t.Errorf("%s %s: mean %g, want %g", c.typ, c.config, mean, c.mean)
		}
	}
}

// TestClipping checks that elements or rows are clipped and counted.
func TestClipping(t *testing.T) {
	dy := kernel.Matrix{Rows: 2, Cols: 2, Stride: 2, Data: []float32{30, 40, -3, 4}}
	x := kernel.New(2, 2)
	for _, c := range []struct {
		typ, config string
		want        []float32
	}{
		{"ClipGradientComponent", "dim=2 clipping-threshold=10", []float32{10, 10, -3, 4}},
		{"ClipGradientComponent", "dim=2 clipping-threshold=10 norm-based-clipping=true", []float32{6, 8, -3, 4}},
		{"ClipGradientComponent", "dim=2 clipping-threshold=0", []float32{0, 0, 0, 0}},
		{"BackpropTruncationComponent", "dim=2 scale=2 clipping-threshold=20 zeroing-threshold=9", []float32{12, 16, 0, 0}},
	} {
		comp := newComponent(t, c.typ, c.config, nil)
		var pre Precomputed
		if comp.Type() == "BackpropTruncationComponent" {
			pre = &boundaries{crossed: []bool{false, true}, num: 1}
		}
		dx := kernel.New(2, 2)
		if err := Backprop(comp.(Backpropper), &Workspace{}, BackwardPass{Pre: pre, InValue: x, OutValue: x, OutDeriv: dy, ToUpdate: comp, InDeriv: dx}); err != nil {
			t.Fatal(err)
		}
		for j, v := range c.want {
			if math.Abs(float64(dx.Data[j]-v)) > 1e-5 {
				t.Errorf("%s %s: %v, want %v", c.typ, c.config, dx.Data, c.want)
				break
			}
		}
		switch comp := comp.(type) {
		case *backpropTruncationComponent:
			if comp.numClipped != 1 || comp.numZeroed != 1 || comp.count != 2 || comp.numBoundaries != 1 {
				t.Errorf("counted %+v", comp)
			}
		case *clipGradientComponent:
			if comp.normBased && (comp.numClipped != 1 || comp.count != 2) {
				t.Errorf("counted %+v", comp)
			}
		}
	}
}

// TestClipGradientRepair checks that the input is pulled back if enough rows are clipped, and that
// the norm of the derivative is preserved.
func TestClipGradientRepair(t *testing.T) {
	c := newComponent(t, "ClipGradientComponent", "dim=2 clipping-threshold=1 norm-based-clipping=true self-repair-scale=1", nil).(*clipGradientComponent)
	c.numClipped, c.count = 5, 10
	x := kernel.Matrix{Rows: 1, Cols: 2, Stride: 2, Data: []float32{3, 0}}
	dy := kernel.Matrix{Rows: 1, Cols: 2, Stride: 2, Data: []float32{0, 1}}
	dx, to := kernel.New(1, 2), NewGradient(c).(*clipGradientComponent)
	if err := Backprop(c, new(Workspace), BackwardPass{InValue: x, OutDeriv: dy, ToUpdate: to, InDeriv: dx}); err != nil {
		t.Fatal(err)
	}
	// The push is half the norm of the derivative, and the sum is brought back to that norm.
	if want := float32(-1 / math.Sqrt(5)); math.Abs(rowNorm(dx.Data)-1) > 1e-5 || dx.Data[0] < want-1e-5 || dx.Data[0] > want+1e-5 || to.numSelfRepaired != 1 {
		t.Fatalf("pulled to %v, want %g in front, %d times", dx.Data, want, to.numSelfRepaired)
	}
}
