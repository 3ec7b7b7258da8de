#include "textflag.h"

// func cpuid(leaf uint32) (ax, cx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-16
	MOVL leaf+0(FP), AX
	XORL CX, CX
	CPUID
	MOVL AX, ax+8(FP)
	MOVL CX, cx+12(FP)
	RET
