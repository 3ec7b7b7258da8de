package component

// registry lists the types in the order of their names.
var registry = [...]struct {
	name string
	make func() Component
}{
	{"AffineComponent", func() Component { return new(Affine) }},
	{"BackpropTruncationComponent", func() Component { return new(BackpropTruncation) }},
	{"BatchNormComponent", func() Component { return new(BatchNorm) }},
	{"BlockAffineComponent", func() Component { return new(BlockAffine) }},
	{"ClipGradientComponent", func() Component { return new(ClipGradient) }},
	{"CompositeComponent", func() Component { return new(Composite) }},
	{"ConstantComponent", func() Component { return new(Constant) }},
	{"ConstantFunctionComponent", func() Component { return new(ConstantFunction) }},
	{"ConvolutionComponent", func() Component { return new(Convolution) }},
	{"DistributeComponent", func() Component { return new(Distribute) }},
	{"DropoutComponent", func() Component { return new(Dropout) }},
	{"DropoutMaskComponent", func() Component { return new(DropoutMask) }},
	{"ElementwiseProductComponent", func() Component { return new(ElementwiseProduct) }},
	{"FixedAffineComponent", func() Component { return new(FixedAffine) }},
	{"FixedBiasComponent", func() Component { return new(FixedBias) }},
	{"FixedScaleComponent", func() Component { return new(FixedScale) }},
	{"GeneralDropoutComponent", func() Component { return new(GeneralDropout) }},
	{"GruNonlinearityComponent", func() Component { return new(GruNonlinearity) }},
	{"LinearComponent", func() Component { return new(Linear) }},
	{"LogSoftmaxComponent", func() Component { return new(LogSoftmax) }},
	{"LstmNonlinearityComponent", func() Component { return new(LstmNonlinearity) }},
	{"MaxpoolingComponent", func() Component { return new(Maxpooling) }},
	{"NaturalGradientAffineComponent", func() Component { return new(NaturalGradientAffine) }},
	{"NaturalGradientPerElementScaleComponent", func() Component { return new(NaturalGradientPerElementScale) }},
	{"NaturalGradientRepeatedAffineComponent", func() Component { return new(NaturalGradientRepeatedAffine) }},
	{"NoOpComponent", func() Component { return new(NoOp) }},
	{"NormalizeComponent", func() Component { return new(Normalize) }},
	{"OutputGruNonlinearityComponent", func() Component { return new(OutputGruNonlinearity) }},
	{"PerElementOffsetComponent", func() Component { return new(PerElementOffset) }},
	{"PerElementScaleComponent", func() Component { return new(PerElementScale) }},
	{"PermuteComponent", func() Component { return new(Permute) }},
	{"PnormComponent", func() Component { return new(Pnorm) }},
	{"RectifiedLinearComponent", func() Component { return new(RectifiedLinear) }},
	{"RepeatedAffineComponent", func() Component { return new(RepeatedAffine) }},
	{"RestrictedAttentionComponent", func() Component { return new(RestrictedAttention) }},
	{"ScaleAndOffsetComponent", func() Component { return new(ScaleAndOffset) }},
	{"SigmoidComponent", func() Component { return new(Sigmoid) }},
	{"SoftmaxComponent", func() Component { return new(Softmax) }},
	{"SpecAugmentTimeMaskComponent", func() Component { return new(SpecAugmentTimeMask) }},
	{"StatisticsExtractionComponent", func() Component { return new(StatisticsExtraction) }},
	{"StatisticsPoolingComponent", func() Component { return new(StatisticsPooling) }},
	{"SumBlockComponent", func() Component { return new(SumBlock) }},
	{"SumGroupComponent", func() Component { return new(SumGroup) }},
	{"TanhComponent", func() Component { return new(Tanh) }},
	{"TdnnComponent", func() Component { return new(Tdnn) }},
	{"TimeHeightConvolutionComponent", func() Component { return new(TimeHeightConvolution) }},
}

// New returns a component of the named type, to be made by Init or Read. It reports false for a type it doesn't know.
func New(typ string) (Component, bool) {
	for i := range registry {
		if registry[i].name == typ {
			return registry[i].make(), true
		}
	}
	return nil, false
}

// Types returns the names of all types, sorted.
func Types() []string {
	names := make([]string, len(registry))
	for i := range registry {
		names[i] = registry[i].name
	}
	return names
}
