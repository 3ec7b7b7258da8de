package optdb

import (
	"slices"

	"github.com/nnopt/nnopt/internal/fileio/spell"
)

// didYouMean returns ", did you mean ...?" with the word of the list that is most
// like what was written, or "" if none is similar.
func didYouMean(written string, words []string) string {
	best := spell.Nearest(written, slices.DeleteFunc(slices.Sorted(slices.Values(words)), func(w string) bool { return w == written }))
	if best == "" {
		return ""
	}
	return ", did you mean " + best + "?"
}
