#include "textflag.h"

// func pause()
//
// Lets the other thread of the core work for a while.
TEXT ·pause(SB), NOSPLIT, $0-0
	PAUSE
	PAUSE
	RET
