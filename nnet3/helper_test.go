package nnet3

import (
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

func quoteBytes(b []byte) string { return strconv.Quote(string(b)) }

// normalized removes what the reference models have and the config lines have not: test mode.
func normalized(lines string) string {
	return strings.NewReplacer("|uses-memo", "", "|stores-stats", "").Replace(lines)
}
