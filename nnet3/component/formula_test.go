package component

import (
	"math"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// TestFormulas checks what components compute, with numbers that are easy to check by hand. The
// components are in Kaldi's text form, so this also tests reading old and new forms.
func TestFormulas(t *testing.T) {
	for _, c := range []struct {
		file    string
		in, out []float32 // a row
	}{
		{"<PermuteComponent> <ColumnMap> [ 2 0 1 ] </PermuteComponent>", []float32{1, 2, 3}, []float32{3, 1, 2}},
		{"<PnormComponent> <InputDim> 4 <OutputDim> 2 </PnormComponent>", []float32{3, 4, 0, 0}, []float32{5, 0}},
		{"<SumBlockComponent> <InputDim> 4 <OutputDim> 2 <Scale> 0.5 </SumBlockComponent>", []float32{1, 2, 3, 4}, []float32{2, 3}},
		{"<SumGroupComponent> <Sizes> [ 1 3 ] </SumGroupComponent>", []float32{1, 2, 3, 4}, []float32{1, 9}},
		{"<ElementwiseProductComponent> <InputDim> 6 <OutputDim> 2 </ElementwiseProductComponent>", []float32{1, 2, 3, 4, 5, 6}, []float32{15, 48}},
		{"<FixedScaleComponent> <Scales> [ 2 -1 ] </FixedScaleComponent>", []float32{3, 4}, []float32{6, -4}},
		{"<FixedBiasComponent> <Bias> [ 2 -1 ] </FixedBiasComponent>", []float32{3, 4}, []float32{5, 3}},
		{"<FixedAffineComponent> <LinearParams> [ 1 2\n 3 4 ]\n<BiasParams> [ 10 20 ]\n</FixedAffineComponent>", []float32{1, -1}, []float32{9, 19}},
		{"<AffineComponent> <LearningRate> 0.1 <LinearParams> [ 1 2 ]\n<BiasParams> [ 10 ]\n<IsGradient> F </AffineComponent>", []float32{3, 4}, []float32{21}},
		{"<NaturalGradientAffineComponent> <LearningRate> 0.001 <LinearParams> [ 1 2 ]\n<BiasParams> [ 10 ]\n<RankIn> 20 <RankOut> 80 <UpdatePeriod> 4 <NumSamplesHistory> 2000 <Alpha> 4 <MaxChangePerSample> 0.075 <IsGradient> F <UpdateCount> 5 <ActiveScalingCount> 1 <MaxChangeScaleStats> 1 </NaturalGradientAffineComponent>", []float32{3, 4}, []float32{21}},
		{"<NaturalGradientAffineComponent> <LearningRate> 0.001 <LinearParams> [ 1 2 ]\n<BiasParams> [ 10 ]\n<RankIn> 20 <RankOut> 80 <UpdatePeriod> 4 <NumSamplesHistory> 2000 <Alpha> 4 <NaturalGradientAffineComponent> ", []float32{3, 4}, []float32{21}},
		{"<RepeatedAffineComponent> <LearningRate> 0.001 <NumRepeats> 2 <LinearParams> [ 1 2 ]\n<BiasParams> [ 10 ]\n</RepeatedAffineComponent>", []float32{1, 2, 3, 4}, []float32{15, 21}},
		{"<BlockAffineComponent> <LearningRate> 0.001 <NumBlocks> 2 <LinearParams> [ 1 2\n 3 4 ]\n<BiasParams> [ 10 20 ]\n</BlockAffineComponent>", []float32{1, 2, 3, 4}, []float32{15, 45}},
		{"<ConstantFunctionComponent> <LearningRateFactor> 2 <LearningRate> 0.001 <InputDim> 3 <Output> [ 7 8 ]\n<IsUpdatable> T <UseNaturalGradient> T </ConstantFunctionComponent>", []float32{1, 2, 3}, []float32{7, 8}},
		{"<PerElementOffsetComponent> <LearningRate> 0.001 <Offsets> [ 1 2 ]\n</PerElementOffsetComponent>", []float32{1, 1}, []float32{2, 3}},
		{"<PerElementOffsetComponent> <LearningRate> 0.001 <Offsets> [ 1 2 ]\n<Dim> 4 <UseNaturalGradient> T </PerElementOffsetComponent>", []float32{1, 1, 1, 1}, []float32{2, 3, 2, 3}},
		{"<ScaleAndOffsetComponent> <LearningRate> 0.001 <Dim> 2 <Scales> [ 0 -0.00001 ]\n<Offsets> [ 1 2 ]\n<UseNaturalGradient> T <Rank> 20 </ScaleAndOffsetComponent>", []float32{1e4, 1e4}, []float32{2, 1}},
		{"<ClipGradientComponent> <Dim> 2 <ClippingThreshold> 1 <NormBasedClipping> T <NumElementsClipped> 3 <NumElementsProcessed> 4 </ClipGradientComponent>", []float32{30, 40}, []float32{30, 40}},
		{"<NoOpComponent> <Dim> 2 <ValueAvg> [ ]\n<DerivAvg> [ ]\n<Count> 0 <OderivRms> [ ]\n<OderivCount> 0 <NumDimsSelfRepaired> 0 <NumDimsProcessed> 0 </NoOpComponent>", []float32{1, 2}, []float32{1, 2}},
		{"<RectifiedLinearComponent> <Dim> 3 <ValueAvg> [ 1 1 1 ]\n<DerivAvg> [ 0 0 1 ]\n<Count> 10 </RectifiedLinearComponent>", []float32{-1, 0, 2}, []float32{0, 0, 2}},
		{"<NormalizeComponent> <Dim> 2 <TargetRms> 1 <AddLogStddev> T <ValueAvg> [ ]\n<DerivAvg> [ ]\n<Count> 0 </NormalizeComponent>", []float32{3, 3}, []float32{1, 1, float32(math.Log(3))}},
		{"<DropoutComponent> <Dim> 2 <DropoutProportion> 0.25 <DropoutPerFrame> F <TestMode> T </DropoutComponent>", []float32{4, 8}, []float32{3, 6}},
		{"<BatchNormComponent> <Dim> 4 <BlockDim> 2 <Epsilon> 1 <TargetRms> 2 <TestMode> T <Count> 10 <StatsMean> [ 1 2 ]\n<StatsVar> [ 3 0 ]\n</BatchNormComponent>", []float32{2, 2, 3, 4}, []float32{1, 0, 2, 4}},
		{"<MaxpoolingComponent> <InputXDim> 2 <InputYDim> 1 <InputZDim> 3 <PoolXSize> 2 <PoolYSize> 1 <PoolZSize> 2 <PoolXStep> 1 <PoolYStep> 1 <PoolZStep> 1 </MaxpoolingComponent>", []float32{1, 5, 2, 4, 0, 3}, []float32{5, 5}},
	} {
		typ, _, _ := strings.Cut(strings.TrimPrefix(c.file, "<"), ">")
		comp, err := readText(c.file)
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		in := kernel.Matrix{Rows: 1, Cols: len(c.in), Stride: len(c.in), Data: c.in}
		out := kernel.New(1, len(c.out))
		if _, err := Propagate(comp, &Workspace{}, ForwardPass{}, in, out); err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		for j, v := range c.out {
			if math.Abs(float64(out.Data[j]-v)) > 1e-6*(1+math.Abs(float64(v))) {
				t.Errorf("%s: %v gave %v, want %v", typ, c.in, out.Data, c.out)
				break
			}
		}
	}
}

func readText(text string) (Component, error) {
	r, err := kaldiio.NewReader(strings.NewReader(text+"\n"), "text")
	if err != nil {
		return nil, err
	}
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	typ := strings.Trim(token, "<>")
	c, ok := kaldi.New(typ)
	if !ok {
		return nil, r.Errorf("unknown type %s", typ)
	}
	return c, kaldi.Read(c, r)
}

// TestInconsistentFiles checks that contradictions in a file are errors that say what and where.
func TestInconsistentFiles(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"<AffineComponent> <LearningRate> 0.1 <LinearParams> [ 1 2 ]\n<BiasParams> [ 10 11 ]\n</AffineComponent>", "2 biases for 1 outputs"},
		{"<AffineComponent> <LearningRate> 0.1 <LinearParams> [ ]\n<BiasParams> [ ]\n</AffineComponent>", "no linear parameters"},
		{"<PermuteComponent> <ColumnMap> [ 2 0 0 ] </PermuteComponent>", "not a permutation"},
		{"<NoOpComponent> <Dim> 0 <BackpropScale> 1 </NoOpComponent>", "not between 1 and"},
		{"<NoOpComponent> <Dim> 2000000000 <BackpropScale> 1 </NoOpComponent>", "not between 1 and"},
		{"<SumGroupComponent> <Sizes> [ 1 0 ] </SumGroupComponent>", "not positive"},
		{"<PnormComponent> <InputDim> 5 <OutputDim> 2 </PnormComponent>", "no multiple"},
		{"<BatchNormComponent> <Dim> 4 <BlockDim> 2 <Epsilon> 0 <TargetRms> 1 <TestMode> F <Count> 0 <StatsMean> [ 0 0 ]\n<StatsVar> [ 0 0 ]\n</BatchNormComponent>", "not positive"},
		{"<BatchNormComponent> <Dim> 4 <BlockDim> 2 <Epsilon> 1 <TargetRms> 1 <TestMode> F <Count> 0 <StatsMean> [ 0 ]\n<StatsVar> [ 0 0 ]\n</BatchNormComponent>", "statistics of 1 and 2"},
		{"<TdnnComponent> <LearningRate> 1 <TimeOffsets> [ 0 0 ]\n<LinearParams> [ 1 2 ]\n<BiasParams> [ ]\n<OrthonormalConstraint> 0 <UseNaturalGradient> T <NumSamplesHistory> 1 <AlphaInOut> 4 4 <RankInOut> 1 1 </TdnnComponent>", "repeated"},
		{"<TdnnComponent> <LearningRate> 1 <TimeOffsets> [ 0 1 ]\n<LinearParams> [ 1 2 3 ]\n<BiasParams> [ ]\n<OrthonormalConstraint> 0 <UseNaturalGradient> T <NumSamplesHistory> 1 <AlphaInOut> 4 4 <RankInOut> 1 1 </TdnnComponent>", "3 columns for 2 time offsets"},
		{"<CompositeComponent> <LearningRate> 1 <MaxRowsProcess> 0 <NumComponents> 1 <CompositeComponent> </CompositeComponent>", "can't be part"},
		{"<CompositeComponent> <LearningRate> 1 <MaxRowsProcess> 0 <NumComponents> 2 <NoOpComponent> <Dim> 2 <BackpropScale> 1 </NoOpComponent> <NoOpComponent> <Dim> 3 <BackpropScale> 1 </NoOpComponent> </CompositeComponent>", "puts out 2 columns"},
		{"<NoOpComponent> <Dim> 2 </TanhComponent>", "</NoOpComponent>"},
	} {
		comp, err := readText(c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "text: line ") {
			t.Errorf("%.60s…: error %v, want one that says %q and where (%T)", c.file, err, c.want, comp)
		}
	}
}
