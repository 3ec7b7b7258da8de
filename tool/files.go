package tool

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
)

// SameFile reports whether two names refer to the same existing file.
func SameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && x.Mode().IsRegular() && os.SameFile(x, y)
}

// readWith reads what a file holds, up to the limit of texts.
func readWith[T any](name, what string, read func(io.Reader) (T, error)) (v T, err error) {
	file, err := os.Open(name)
	if err != nil {
		return v, err
	}
	defer file.Close()
	if v, err = read(fileio.Limit(file, what, fileio.MaxText)); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return v, err
}

// WriteTo writes to a file or, for "-", to standard output.
func WriteTo(ctx context.Context, stdout io.Writer, name string, write func(io.Writer) error) error {
	if name == "-" {
		return write(stdout)
	}
	return fileio.Write(ctx, name, write)
}

// readText reads a graph file as text. "-" is standard input.
func readText(c *Console, name string) (text string, head *graphfile.File, err error) {
	var data []byte
	if name == "-" {
		data, err = fileio.ReadAll(c.Stdin, "standard input", fileio.MaxText)
	} else {
		data, err = fileio.ReadFile(name, fileio.MaxText)
	}
	if err != nil {
		return "", nil, err
	}
	if head, err = graphfile.ParseHead(name, string(data)); err != nil {
		return "", nil, fmt.Errorf("%s is no graph file: %w", name, err)
	}
	return string(data), head, nil
}
