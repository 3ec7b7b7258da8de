package compile

import (
	"context"
	"fmt"
)

// An interrupt is how the loops of a compilation learn that nobody wants it any more. The zero value never comes.
type interrupt struct {
	ctx   context.Context
	calls uint
	err   error
}

// came reports whether to stop. It looks once in many calls, so that it may be asked for every row; what it has seen once stays
// in err, so that a loop that can't return an error may just end.
func (i *interrupt) came() bool {
	if i.calls++; i.calls%256 == 1 && i.err == nil && i.ctx != nil && i.ctx.Err() != nil {
		i.err = fmt.Errorf("compiling: %w", context.Cause(i.ctx))
	}
	return i.err != nil
}
