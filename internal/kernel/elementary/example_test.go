package elementary_test

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/kernel/elementary"
)

// Functions have the same bits on every processor.
func Example() {
	fmt.Printf("%x\n", elementary.Exp(1))
	fmt.Printf("%x\n", elementary.LogAddExp(1000, 1001))
	// Output:
	// 0x1.5bf0a8b14576ap+01
	// 0x1.f4a818f57f7d8p+09
}
