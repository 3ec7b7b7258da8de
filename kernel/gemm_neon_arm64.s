#include "textflag.h"

// The sums of two rows are in V0 and on. A step takes a row of a panel and an element of each x.

// func chains8NEON(x0, x1 *float32, xStep uintptr, w *float32, k int, sums *chainSums)
TEXT ·chains8NEON(SB), NOSPLIT, $0-48
	MOVD x0+0(FP), R0
	MOVD x1+8(FP), R1
	MOVD xStep+16(FP), R2
	MOVD w+24(FP), R3
	MOVD k+32(FP), R4
	MOVD sums+40(FP), R5
	VLD1 (R5), [V0.S4, V1.S4, V2.S4, V3.S4]
	CBZ  R4, done

loop:
	VLD1.P 32(R3), [V16.S4, V17.S4]
	VLD1R  (R0), [V20.S4]
	VLD1R  (R1), [V21.S4]
	ADD    R2, R0
	ADD    R2, R1
	VFMLA  V16.S4, V20.S4, V0.S4
	VFMLA  V17.S4, V20.S4, V1.S4
	VFMLA  V16.S4, V21.S4, V2.S4
	VFMLA  V17.S4, V21.S4, V3.S4
	SUB    $1, R4
	CBNZ   R4, loop

done:
	VST1 [V0.S4, V1.S4, V2.S4, V3.S4], (R5)
	RET

// func chains16NEON(x0, x1 *float32, xStep uintptr, w *float32, k int, sums *chainSums)
TEXT ·chains16NEON(SB), NOSPLIT, $0-48
	MOVD x0+0(FP), R0
	MOVD x1+8(FP), R1
	MOVD xStep+16(FP), R2
	MOVD w+24(FP), R3
	MOVD k+32(FP), R4
	MOVD sums+40(FP), R5
	ADD  $64, R5, R6
	VLD1 (R5), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1 (R6), [V4.S4, V5.S4, V6.S4, V7.S4]
	CBZ  R4, done

loop:
	VLD1.P 64(R3), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1R  (R0), [V20.S4]
	VLD1R  (R1), [V21.S4]
	ADD    R2, R0
	ADD    R2, R1
	VFMLA  V16.S4, V20.S4, V0.S4
	VFMLA  V17.S4, V20.S4, V1.S4
	VFMLA  V18.S4, V20.S4, V2.S4
	VFMLA  V19.S4, V20.S4, V3.S4
	VFMLA  V16.S4, V21.S4, V4.S4
	VFMLA  V17.S4, V21.S4, V5.S4
	VFMLA  V18.S4, V21.S4, V6.S4
	VFMLA  V19.S4, V21.S4, V7.S4
	SUB    $1, R4
	CBNZ   R4, loop

done:
	VST1 [V0.S4, V1.S4, V2.S4, V3.S4], (R5)
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (R6)
	RET
