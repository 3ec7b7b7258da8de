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
	switch from {
	case Bool:
		castBools(to, dst, a.b[:n])
	case Int8:
		castNumbers(to, dst, a.i8[:n])
	case Int16:
		castNumbers(to, dst, a.i16[:n])
	case Int32:
		castNumbers(to, dst, a.i32[:n])
	case Int64:
		castNumbers(to, dst, a.i[:n])
	case Uint8:
		castNumbers(to, dst, a.u8[:n])
	case Uint16:
		castNumbers(to, dst, a.u16[:n])
	case Uint32:
		castNumbers(to, dst, a.u32[:n])
	case Uint64:
		castNumbers(to, dst, a.u[:n])
	case Float32:
		castFloats(to, dst, a.f[:n])
	case Float64:
		castNumbers(to, dst, a.d[:n])
	}
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

func castBools(to DType, dst *lane, a []bool) {
	switch n := len(a); to {
	case Int8:
		unboolBlock(dst.i8[:n], a)
	case Int16:
		unboolBlock(dst.i16[:n], a)
	case Int32:
		unboolBlock(dst.i32[:n], a)
	case Int64:
		unboolBlock(dst.i[:n], a)
	case Uint8:
		unboolBlock(dst.u8[:n], a)
	case Uint16:
		unboolBlock(dst.u16[:n], a)
	case Uint32:
		unboolBlock(dst.u32[:n], a)
	case Uint64:
		unboolBlock(dst.u[:n], a)
	case Float32:
		unboolBlock(dst.f[:n], a)
	case Float64:
		unboolBlock(dst.d[:n], a)
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

func boolBlock[T number](dst []bool, a []T) {
	for i := range dst {
		dst[i] = a[i] != 0
	}
}

func unboolBlock[T number](dst []T, a []bool) {
	for i := range dst {
		dst[i] = 0
		if a[i] {
			dst[i] = 1
		}
	}
}
