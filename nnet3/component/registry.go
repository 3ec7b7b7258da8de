package component

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// A Registry makes components by the names of their types. It never changes, and several
// goroutines may use it.
type Registry struct{ types []componentType } // sorted by name

type componentType struct {
	name string
	make func() Component
}

// Kaldi returns the registry of the types of this package.
func Kaldi() *Registry { return kaldi }

// kaldi lists the types. A new one is a file of its own and a line here.
var kaldi = &Registry{[]componentType{
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
}}

// ErrRegistry says that a registry can't have a type.
var ErrRegistry = errors.New("bad component type")

// With returns the registry with further types, by functions that return an empty component, for
// Init or Read. Its method Type names the type: a word that ends with "Component" and that no other
// type has.
func (r *Registry) With(makers ...func() Component) (*Registry, error) {
	next := &Registry{slices.Clone(r.types)}
	var faults []error
	for _, make := range makers {
		name := make().Type()
		i, taken := next.find(name)
		switch {
		case taken:
			faults = append(faults, fmt.Errorf("%w: there is a %s already", ErrRegistry, name))
		case !strings.HasSuffix(name, "Component") || strings.ContainsAny(name, " \t\n<>=\"'#"):
			faults = append(faults, fmt.Errorf("%w: %q is not a word that ends with Component", ErrRegistry, name))
		default:
			next.types = slices.Insert(next.types, i, componentType{name, make})
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return next, nil
}

// find returns the place of a type, and whether it is there.
func (r *Registry) find(typ string) (int, bool) {
	return slices.BinarySearchFunc(r.types, typ, func(t componentType, name string) int { return cmp.Compare(t.name, name) })
}

// New returns an empty component of the named type, for Init or Read. It reports false if there is
// no such type.
func (r *Registry) New(typ string) (Component, bool) {
	i, ok := r.find(typ)
	if !ok {
		return nil, false
	}
	return r.types[i].make(), true
}

// Types returns the names of all types, sorted.
func (r *Registry) Types() []string {
	names := make([]string, len(r.types))
	for i := range r.types {
		names[i] = r.types[i].name
	}
	return names
}

// Read reads the fields of c, fresh from New, from after its opening token up to and including
// its closing token. The parts of a composite may be of any type in the registry.
func (r *Registry) Read(c Component, from *kaldiio.Reader) error {
	f := Fields{r: from, typ: c.Type(), types: r}
	c.Fields(&f)
	if !f.closed {
		f.expect("</" + f.typ + ">")
	}
	return f.err
}
