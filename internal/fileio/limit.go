package fileio

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// MaxText is the limit for text that is read into memory as a whole, such as JSON or config
// lines: 64 MiB. The largest requests and networks need a tenth of it.
const MaxText = 1 << 26

// ErrLimit means that an input is larger than its limit.
var ErrLimit = errors.New("the limit")

// ReadFile reads a file of at most limit bytes. If the file is larger, the error names the file
// and the limit, and wraps ErrLimit. A file that Git LFS did not fetch is an error that wraps ErrLFS.
func ReadFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, name, limit)
}

// ReadAll is like ReadFile for a stream. The name appears in errors.
func ReadAll(r io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(Limit(r, name, limit))
	if err != nil {
		return nil, err
	}
	if err := CheckLFS(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// Limit returns a reader of r that fails after limit bytes if there are more. The error names
// the stream and the limit, and wraps ErrLimit.
func Limit(r io.Reader, name string, limit int64) io.Reader {
	return &limited{r: r, name: name, limit: limit, left: limit}
}

type limited struct {
	r           io.Reader
	name        string
	limit, left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1] // one more byte shows whether there are more
	}
	n, err := l.r.Read(p)
	if int64(n) > l.left {
		n, err = int(l.left), fmt.Errorf("%s has more than %d bytes, %w", l.name, l.limit, ErrLimit)
	}
	l.left -= int64(n)
	return n, err
}
