#include "textflag.h"

// func transpose8Blocks(dst *float32, dstRow uintptr, src *float32, srcRow uintptr, n int, ahead uintptr)
//
// Transposes 8 rows and 8·n columns of src, 4 columns at a time: first pairs of rows, then pairs of pairs. What is ahead
// is left to the processor.
TEXT ·transpose8Blocks(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD dstRow+8(FP), R1
	MOVD src+16(FP), R2
	MOVD srcRow+24(FP), R9
	MOVD n+32(FP), R5
	ADD  R9, R2, R3
	ADD  R9, R3, R4
	ADD  R9, R4, R6
	ADD  R9, R6, R7
	ADD  R9, R7, R8
	ADD  R9, R8, R10
	ADD  R9, R10, R11
	LSL  $1, R5

block:
	FMOVQ.P 16(R2), F0
	FMOVQ.P 16(R3), F1
	FMOVQ.P 16(R4), F2
	FMOVQ.P 16(R6), F3
	FMOVQ.P 16(R7), F4
	FMOVQ.P 16(R8), F5
	FMOVQ.P 16(R10), F6
	FMOVQ.P 16(R11), F7

	VTRN1 V1.S4, V0.S4, V16.S4
	VTRN2 V1.S4, V0.S4, V17.S4
	VTRN1 V3.S4, V2.S4, V18.S4
	VTRN2 V3.S4, V2.S4, V19.S4
	VTRN1 V5.S4, V4.S4, V20.S4
	VTRN2 V5.S4, V4.S4, V21.S4
	VTRN1 V7.S4, V6.S4, V22.S4
	VTRN2 V7.S4, V6.S4, V23.S4

	VTRN1 V18.D2, V16.D2, V0.D2
	VTRN1 V22.D2, V20.D2, V1.D2
	VTRN1 V19.D2, V17.D2, V2.D2
	VTRN1 V23.D2, V21.D2, V3.D2
	VTRN2 V18.D2, V16.D2, V4.D2
	VTRN2 V22.D2, V20.D2, V5.D2
	VTRN2 V19.D2, V17.D2, V6.D2
	VTRN2 V23.D2, V21.D2, V7.D2

	FSTPQ (F0, F1), (R0)
	ADD   R1, R0
	FSTPQ (F2, F3), (R0)
	ADD   R1, R0
	FSTPQ (F4, F5), (R0)
	ADD   R1, R0
	FSTPQ (F6, F7), (R0)
	ADD   R1, R0
	SUBS  $1, R5
	BNE   block
	RET

// func transpose4Blocks(dst *float64, dstRow uintptr, src *float64, srcRow uintptr, n int)
//
// Transposes 4 rows of src, 4 elements of each at a time, n times over: dst gets rows of 4, dstRow bytes apart.
TEXT ·transpose4Blocks(SB), NOSPLIT, $0-40
	MOVD dst+0(FP), R0
	MOVD dstRow+8(FP), R1
	MOVD src+16(FP), R2
	MOVD srcRow+24(FP), R9
	MOVD n+32(FP), R5
	ADD  R9, R2, R3
	ADD  R9, R3, R4
	ADD  R9, R4, R6
	LSL  $1, R5

block:
	FMOVQ.P 16(R2), F0
	FMOVQ.P 16(R3), F1
	FMOVQ.P 16(R4), F2
	FMOVQ.P 16(R6), F3
	VTRN1   V1.D2, V0.D2, V4.D2
	VTRN1   V3.D2, V2.D2, V5.D2
	VTRN2   V1.D2, V0.D2, V6.D2
	VTRN2   V3.D2, V2.D2, V7.D2
	FSTPQ   (F4, F5), (R0)
	ADD     R1, R0
	FSTPQ   (F6, F7), (R0)
	ADD     R1, R0
	SUBS    $1, R5
	BNE     block
	RET

// func copyStripes(dst unsafe.Pointer, dstStripe uintptr, src unsafe.Pointer, srcRow uintptr, rows, stripes, units int)
//
// Copies the rows of a stripe, of 32·units bytes each, then those of the next one.
TEXT ·copyStripes(SB), NOSPLIT, $0-56
	MOVD dst+0(FP), R0
	MOVD dstStripe+8(FP), R1
	MOVD src+16(FP), R2
	MOVD srcRow+24(FP), R3
	MOVD rows+32(FP), R4
	MOVD stripes+40(FP), R5
	MOVD units+48(FP), R6

stripe:
	MOVD R4, R7
	MOVD R2, R8 // the row
	MOVD R0, R9

row:
	MOVD R6, R10
	MOVD R8, R11

unit:
	VLD1.P 32(R11), [V0.B16, V1.B16]
	VST1.P [V0.B16, V1.B16], 32(R9)
	SUBS   $1, R10
	BNE    unit
	ADD    R3, R8
	SUBS   $1, R7
	BNE    row
	ADD    R6<<5, R2
	ADD    R1, R0
	SUBS   $1, R5
	BNE    stripe
	RET
