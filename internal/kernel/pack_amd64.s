#include "textflag.h"

// func transpose8Blocks(dst *float32, dstRow uintptr, src *float32, srcRow uintptr, n int, ahead uintptr)
//
// Transposes 8 rows and 8·n columns of src, a block of 8×8 at a time: first the quarters of every register, two rows
// below one another, then the elements within them. Fetches the 8 rows that begin ahead bytes further.
TEXT ·transpose8Blocks(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ dstRow+8(FP), DX
	MOVQ src+16(FP), SI
	MOVQ srcRow+24(FP), R9
	MOVQ n+32(FP), CX
	MOVQ ahead+40(FP), R12
	LEAQ (R9)(R9*2), R8
	LEAQ (DX)(DX*2), BX
	LEAQ (SI)(R8*1), R10  // row 3
	LEAQ (R10)(R8*1), R11 // row 6
	ADDQ SI, R12
	LEAQ (R12)(R8*1), R13
	LEAQ (R13)(R8*1), R8  // row 6 of those to fetch

block:
	PREFETCHT0  (R12)
	PREFETCHT0  (R12)(R9*1)
	PREFETCHT0  (R12)(R9*2)
	PREFETCHT0  (R13)
	PREFETCHT0  (R13)(R9*1)
	PREFETCHT0  (R13)(R9*2)
	PREFETCHT0  (R8)
	PREFETCHT0  (R8)(R9*1)
	VMOVUPS     (SI), X0
	VMOVUPS     (SI)(R9*1), X1
	VMOVUPS     (SI)(R9*2), X2
	VMOVUPS     (R10), X3
	VMOVUPS     16(SI), X4
	VMOVUPS     16(SI)(R9*1), X5
	VMOVUPS     16(SI)(R9*2), X6
	VMOVUPS     16(R10), X7
	VINSERTF128 $1, (R10)(R9*1), Y0, Y0
	VINSERTF128 $1, (R10)(R9*2), Y1, Y1
	VINSERTF128 $1, (R11), Y2, Y2
	VINSERTF128 $1, (R11)(R9*1), Y3, Y3
	VINSERTF128 $1, 16(R10)(R9*1), Y4, Y4
	VINSERTF128 $1, 16(R10)(R9*2), Y5, Y5
	VINSERTF128 $1, 16(R11), Y6, Y6
	VINSERTF128 $1, 16(R11)(R9*1), Y7, Y7

	VUNPCKLPS Y1, Y0, Y8
	VUNPCKHPS Y1, Y0, Y9
	VUNPCKLPS Y3, Y2, Y10
	VUNPCKHPS Y3, Y2, Y11
	VUNPCKLPS Y5, Y4, Y12
	VUNPCKHPS Y5, Y4, Y13
	VUNPCKLPS Y7, Y6, Y14
	VUNPCKHPS Y7, Y6, Y15

	VUNPCKLPD Y10, Y8, Y0
	VUNPCKHPD Y10, Y8, Y1
	VUNPCKLPD Y11, Y9, Y2
	VUNPCKHPD Y11, Y9, Y3
	VUNPCKLPD Y14, Y12, Y4
	VUNPCKHPD Y14, Y12, Y5
	VUNPCKLPD Y15, Y13, Y6
	VUNPCKHPD Y15, Y13, Y7

	LEAQ    (DI)(DX*4), AX
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, (DI)(DX*1)
	VMOVUPS Y2, (DI)(DX*2)
	VMOVUPS Y3, (DI)(BX*1)
	VMOVUPS Y4, (AX)
	VMOVUPS Y5, (AX)(DX*1)
	VMOVUPS Y6, (AX)(DX*2)
	VMOVUPS Y7, (AX)(BX*1)

	ADDQ $32, SI
	ADDQ $32, R10
	ADDQ $32, R11
	ADDQ $32, R12
	ADDQ $32, R13
	ADDQ $32, R8
	LEAQ (DI)(DX*8), DI
	DECQ CX
	JNZ  block
	VZEROUPPER
	RET

// func transpose4Blocks(dst *float64, dstRow uintptr, src *float64, srcRow uintptr, n int)
//
// Transposes 4 rows of src, 4 elements of each at a time, n times over: dst gets rows of 4, dstRow bytes apart.
TEXT ·transpose4Blocks(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ dstRow+8(FP), R8
	MOVQ src+16(FP), SI
	MOVQ srcRow+24(FP), R9
	MOVQ n+32(FP), CX
	LEAQ (SI)(R9*2), DX

block:
	VMOVUPD    (SI), Y0
	VMOVUPD    (SI)(R9*1), Y1
	VMOVUPD    (DX), Y2
	VMOVUPD    (DX)(R9*1), Y3
	VUNPCKLPD  Y1, Y0, Y4
	VUNPCKHPD  Y1, Y0, Y5
	VUNPCKLPD  Y3, Y2, Y6
	VUNPCKHPD  Y3, Y2, Y7
	VPERM2F128 $0x20, Y6, Y4, Y0
	VPERM2F128 $0x20, Y7, Y5, Y1
	VPERM2F128 $0x31, Y6, Y4, Y2
	VPERM2F128 $0x31, Y7, Y5, Y3
	VMOVUPD    Y0, (DI)
	VMOVUPD    Y1, (DI)(R8*1)
	LEAQ       (DI)(R8*2), DI
	VMOVUPD    Y2, (DI)
	VMOVUPD    Y3, (DI)(R8*1)
	LEAQ       (DI)(R8*2), DI
	ADDQ       $32, SI
	ADDQ       $32, DX
	DECQ       CX
	JNZ        block
	VZEROUPPER
	RET

// func copyStripes(dst unsafe.Pointer, dstStripe uintptr, src unsafe.Pointer, srcRow uintptr, rows, stripes, units int)
//
// Copies the rows of a stripe, of 32·units bytes each, then those of the next one.
TEXT ·copyStripes(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ dstStripe+8(FP), DX
	MOVQ src+16(FP), SI
	MOVQ srcRow+24(FP), BX
	MOVQ stripes+40(FP), CX

stripe:
	MOVQ rows+32(FP), R8
	MOVQ SI, R9           // the row
	MOVQ DI, R10

row:
	MOVQ units+48(FP), R11
	MOVQ R9, R12

unit:
	VMOVUPS (R12), Y0
	VMOVUPS Y0, (R10)
	ADDQ    $32, R12
	ADDQ    $32, R10
	DECQ    R11
	JNZ     unit
	ADDQ    BX, R9
	DECQ    R8
	JNZ     row
	MOVQ    units+48(FP), R11
	SHLQ    $5, R11
	ADDQ    R11, SI
	ADDQ    DX, DI
	DECQ    CX
	JNZ     stripe
	VZEROUPPER
	RET
