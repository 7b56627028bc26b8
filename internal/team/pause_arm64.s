//go:build !purego

#include "textflag.h"

// ISB waits some 10 ns on the cores at hand, where YIELD is often nothing at all.
//
// func pause(n uint32)
TEXT ·pause(SB), NOSPLIT, $0-4
	MOVWU n+0(FP), R0
	CBZ R0, done
again:
	ISB $15
	SUBW $1, R0
	CBNZW R0, again
done:
	RET
