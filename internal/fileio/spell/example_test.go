package spell_test

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/fileio/spell"
)

func Example() {
	tags := []string{"fast_run", "fast_compile", "inplace"}
	fmt.Printf("no tag fast-rnu%s\n", spell.Hint("fast-rnu", tags))
	fmt.Printf("no tag debug%s\n", spell.Hint("debug", tags))
	// Output:
	// no tag fast-rnu; did you mean fast_run?
	// no tag debug
}
