package component

// registry lists the types, sorted by name. A new type of component is a file of its own and a line
// here.
var registry = [...]struct {
	name string
	make func() Component
}{
	{"AffineComponent", func() Component { return new(affineComponent) }},
	{"BackpropTruncationComponent", func() Component { return new(backpropTruncationComponent) }},
	{"BatchNormComponent", func() Component { return new(batchNorm) }},
	{"BlockAffineComponent", func() Component { return new(blockAffineComponent) }},
	{"ClipGradientComponent", func() Component { return new(clipGradientComponent) }},
	{"CompositeComponent", func() Component { return new(compositeComponent) }},
	{"ConstantComponent", func() Component { return new(constantComponent) }},
	{"ConstantFunctionComponent", func() Component { return new(constantFunctionComponent) }},
	{"ConvolutionComponent", func() Component { return new(convolutionComponent) }},
	{"DistributeComponent", func() Component { return new(distributeComponent) }},
	{"DropoutComponent", func() Component { return new(dropoutComponent) }},
	{"DropoutMaskComponent", func() Component { return new(dropoutMaskComponent) }},
	{"ElementwiseProductComponent", func() Component { return new(elementwiseProductComponent) }},
	{"FixedAffineComponent", func() Component { return new(fixedAffineComponent) }},
	{"FixedBiasComponent", func() Component { return new(fixedBiasComponent) }},
	{"FixedScaleComponent", func() Component { return new(fixedScaleComponent) }},
	{"GeneralDropoutComponent", func() Component { return new(generalDropoutComponent) }},
	{"GruNonlinearityComponent", func() Component { return new(gruNonlinearityComponent) }},
	{"LinearComponent", func() Component { return new(linearComponent) }},
	{"LogSoftmaxComponent", func() Component { return &nonlinearity{function: &logSoftmax} }},
	{"LstmNonlinearityComponent", func() Component { return new(lstmNonlinearityComponent) }},
	{"MaxpoolingComponent", func() Component { return new(maxpoolingComponent) }},
	{"NaturalGradientAffineComponent", func() Component { return new(naturalGradientAffineComponent) }},
	{"NaturalGradientPerElementScaleComponent", func() Component { return new(naturalGradientPerElementScaleComponent) }},
	{"NaturalGradientRepeatedAffineComponent", func() Component { return new(naturalGradientRepeatedAffineComponent) }},
	{"NoOpComponent", func() Component { return new(noOpComponent) }},
	{"NormalizeComponent", func() Component { return new(normalizeComponent) }},
	{"OutputGruNonlinearityComponent", func() Component { return new(outputGruNonlinearityComponent) }},
	{"PerElementOffsetComponent", func() Component { return new(perElementOffsetComponent) }},
	{"PerElementScaleComponent", func() Component { return new(perElementScaleComponent) }},
	{"PermuteComponent", func() Component { return new(permuteComponent) }},
	{"PnormComponent", func() Component { return new(pnormComponent) }},
	{"RectifiedLinearComponent", func() Component { return &nonlinearity{function: &rectifiedLinear} }},
	{"RepeatedAffineComponent", func() Component { return new(repeatedAffineComponent) }},
	{"RestrictedAttentionComponent", func() Component { return new(restrictedAttentionComponent) }},
	{"ScaleAndOffsetComponent", func() Component { return new(scaleAndOffsetComponent) }},
	{"SigmoidComponent", func() Component { return &nonlinearity{function: &sigmoid} }},
	{"SoftmaxComponent", func() Component { return &nonlinearity{function: &softmax} }},
	{"SpecAugmentTimeMaskComponent", func() Component { return new(specAugmentTimeMaskComponent) }},
	{"StatisticsExtractionComponent", func() Component { return new(statisticsExtractionComponent) }},
	{"StatisticsPoolingComponent", func() Component { return new(statisticsPoolingComponent) }},
	{"SumBlockComponent", func() Component { return new(sumBlockComponent) }},
	{"SumGroupComponent", func() Component { return new(sumGroupComponent) }},
	{"TanhComponent", func() Component { return &nonlinearity{function: &tanh} }},
	{"TdnnComponent", func() Component { return new(tdnnComponent) }},
	{"TimeHeightConvolutionComponent", func() Component { return new(timeHeightConvolutionComponent) }},
}

// New returns an empty component of the named type, for Init or Read. It reports false if there is
// no such type.
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
