package kernel

// ReLU sets dst to max(src, 0). NaN stays NaN.
func ReLU(dst, src Matrix) {
	sameShape(dst, src)
	for i := range dst.Rows {
		bestSet.relu(Row(dst, i), Row(src, i))
	}
}

// ReLUDeriv sets dx to dy where y > 0, and to 0 elsewhere.
func ReLUDeriv(dx, y, dy Matrix) {
	sameShape(dx, y)
	sameShape(dx, dy)
	for i := range dx.Rows {
		bestSet.reluDeriv(Row(dx, i), Row(y, i), Row(dy, i))
	}
}

// Sigmoid sets dst to 1/(1+exp(-src)).
func Sigmoid(dst, src Matrix) {
	sameShape(dst, src)
	for i := range dst.Rows {
		SigmoidVec(Row(dst, i), Row(src, i))
	}
}

// SigmoidVec is Sigmoid for vectors of one length.
func SigmoidVec(dst, src []float32) {
	bestSet.sigmoid(dst, src)
}

// SigmoidDeriv sets dx to dy·y·(1-y), where y is the sigmoid.
func SigmoidDeriv(dx, y, dy Matrix) {
	sameShape(dx, y)
	sameShape(dx, dy)
	for i := range dx.Rows {
		bestSet.sigmoidDeriv(Row(dx, i), Row(y, i), Row(dy, i))
	}
}

// Tanh sets dst to the hyperbolic tangent of src.
func Tanh(dst, src Matrix) {
	sameShape(dst, src)
	for i := range dst.Rows {
		TanhVec(Row(dst, i), Row(src, i))
	}
}

// TanhVec is Tanh for vectors of one length.
func TanhVec(dst, src []float32) {
	bestSet.tanh(dst, src)
}

// TanhDeriv sets dx to dy·(1-y²), where y is the hyperbolic tangent.
func TanhDeriv(dx, y, dy Matrix) {
	sameShape(dx, y)
	sameShape(dx, dy)
	for i := range dx.Rows {
		bestSet.tanhDeriv(Row(dx, i), Row(y, i), Row(dy, i))
	}
}

// ExpVec sets dst to e**(src-shift) and returns the sum. The vectors have one length.
func ExpVec(dst, src []float32, shift float32) (sum float32) {
	return float32(bestSet.exp(dst, src, shift))
}
