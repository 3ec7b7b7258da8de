package cluster

import (
	"fmt"
	"strconv"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// readTable reads a table of words into memory. The later of two entries with one key counts.
func readTable[T any](o *kaldiio.Opener, rspecifier string, parse func(string) (T, error)) (map[string]T, error) {
	table := make(map[string]T)
	if rspecifier == "" {
		return table, nil
	}
	r, err := kaldiio.NewTableReader(o, rspecifier, kaldiio.Holder[string]{Read: (*kaldiio.Reader).Token})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for key, word := range r.All() {
		if table[key], err = parse(word); err != nil {
			return nil, fmt.Errorf("%s: key %s: %w", rspecifier, key, err)
		}
	}
	return table, r.Err()
}

func asWord(word string) (string, error) { return word, nil }

func asFrames(word string) (int64, error) {
	n, err := strconv.ParseInt(word, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a number of frames", word)
	}
	return n, nil
}
