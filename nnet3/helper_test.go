package nnet3

import (
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

func quoteBytes(b []byte) string { return strconv.Quote(string(b)) }

// normalized removes traces of test mode, which only the reference models have.
func normalized(lines string) string {
	return strings.NewReplacer("|uses-memo", "", "|stores-stats", "").Replace(lines)
}
