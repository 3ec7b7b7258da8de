package nnet3pass

var (
	ErrNoRows                = errNoRows
	SplitRecurrentDerivative = splitRecurrentDerivative
)
