package array

import "github.com/nnopt/nnopt/kernel"

// runCast converts a block. Half floats take the way over float32s, for which there is a lane.
func runCast(from, to DType, dst, a, wide *lane, n int) {
	switch {
	case from.IsHalf() && to == Float32:
		a.widen(from, dst.f[:n])
		return
	case from.IsHalf():
		a.widen(from, wide.f[:n])
		from, a = Float32, wide
	case to == Float16 && from == Float64: // rounded once
		for i, v := range a.d[:n] {
			dst.h[i] = f16OfDouble(v)
		}
		return
	}
	if to.IsHalf() {
		if from != Float32 {
			runCast(from, Float32, wide, a, nil, n)
			a = wide
		}
		dst.round(to, a.f[:n])
		return
	}
	numerics[from].cast(to, dst, a, n)
}

// castFloats is castNumbers with vector code for bytes, which quantizing makes.
func castFloats(to DType, dst *lane, a []float32) {
	switch n := len(a); to {
	case Int8:
		kernel.BytesVec(bytesOf(dst.i8[:n]), a)
	case Uint8:
		kernel.BytesVec(dst.u8[:n], a)
	default:
		castNumbers(to, dst, a)
	}
}

func castNumbers[T number](to DType, dst *lane, a []T) {
	switch n := len(a); to {
	case Bool:
		boolBlock(dst.b[:n], a)
	case Int8:
		castBlock(dst.i8[:n], a)
	case Int16:
		castBlock(dst.i16[:n], a)
	case Int32:
		castBlock(dst.i32[:n], a)
	case Int64:
		castBlock(dst.i[:n], a)
	case Uint8:
		castBlock(dst.u8[:n], a)
	case Uint16:
		castBlock(dst.u16[:n], a)
	case Uint32:
		castBlock(dst.u32[:n], a)
	case Uint64:
		castBlock(dst.u[:n], a)
	case Float32:
		castBlock(dst.f[:n], a)
	case Float64:
		castBlock(dst.d[:n], a)
	}
}

// widen converts half floats of a type.
func (l *lane) widen(t DType, dst []float32) {
	if t == Float16 {
		widenF16(dst, l.h[:len(dst)])
	} else {
		widenBF16(dst, l.bh[:len(dst)])
	}
}

// round makes half floats of a type.
func (l *lane) round(t DType, src []float32) {
	if t == Float16 {
		roundF16(l.h[:len(src)], src)
	} else {
		roundBF16(l.bh[:len(src)], src)
	}
}

// isFloat reports whether numbers have fractions. It is a constant to the compiler, which leaves out what follows for
// other types; with the DType, all loops of castBlock were compiled for all pairs of types.
func isFloat[T number]() bool { return T(1)/2 != 0 }

// castBlock is Cast between numbers; see toInt, toInt32 and toUint.
func castBlock[R, T number](dst []R, a []T) {
	switch to := dtypeOf[R](); {
	case isFloat[R]() || !isFloat[T]():
		for i := range dst {
			dst[i] = R(a[i])
		}
	case to == Uint64:
		for i := range dst {
			dst[i] = R(toUint(float64(a[i])))
		}
	case to == Int64 || to == Uint32:
		for i := range dst {
			dst[i] = R(toInt(float64(a[i])))
		}
	default:
		for i := range dst {
			dst[i] = R(toInt32(float64(a[i])))
		}
	}
}

// ofDouble is castBlock of a number.
func ofDouble[T number](v float64) T {
	var to [1]T
	castBlock(to[:], []float64{v})
	return to[0]
}

func boolBlock[T number](dst []bool, a []T) {
	for i := range dst {
		dst[i] = a[i] != 0
	}
}
