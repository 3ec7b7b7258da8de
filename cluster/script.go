package cluster

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// maxLine bounds a line of a script.
const maxLine = 64 << 10

// A lineError is a line of a script that can't be used. The lines after it can.
type lineError struct {
	key string // if it has one
	err error
}

// readLines calls do for each line of a script, with the name of its object made absolute, or with
// what is wrong with the line. It returns the digest of the script.
func readLines(o *kaldiio.Opener, rspecifier string, do func(kaldiio.ScriptLine, *lineError) error) (sum string, err error) {
	spec, err := kaldiio.ParseRspecifier(rspecifier)
	if err != nil {
		return "", err
	}
	f, err := o.OpenInput(spec.Name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", rspecifier, err)
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	digest := sha256.New()
	if err := eachLine(io.TeeReader(f, digest), spec.Name, do); err != nil {
		return "", err
	}
	return sumOf(digest), nil
}

func eachLine(r io.Reader, name string, do func(kaldiio.ScriptLine, *lineError) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 4<<10), maxLine)
	n := 0
	for lines.Scan() {
		n++
		text := lines.Bytes()
		if bytes.IndexByte(text, 0) >= 0 {
			return fmt.Errorf("%s: line %d: a script is text, but this is binary: is it an archive?", name, n)
		}
		line, err := kaldiio.ParseScriptLine(string(text))
		var bad *lineError
		if err != nil {
			bad = &lineError{err: fmt.Errorf("%s: line %d: %w", name, n, err)}
			if words := bytes.Fields(text); len(words) > 0 {
				bad.key = string(words[0])
			}
		}
		line.Name = absolute(line.Name)
		if err := do(line, bad); err != nil {
			return err
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s: line %d has more than %d bytes: is this a script?", name, n+1, maxLine)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func sumOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// object returns what comes after the key in a script: a name and perhaps a range.
func object(line kaldiio.ScriptLine) string {
	if !line.HasRange {
		return line.Name
	}
	interval := func(first, last int) string {
		if first < 0 {
			return ":"
		}
		return fmt.Sprintf("%d:%d", first, last)
	}
	r := line.Range
	return fmt.Sprintf("%s[%s,%s]", line.Name, interval(r.FirstRow, r.LastRow), interval(r.FirstCol, r.LastCol))
}

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
