package fileio_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/nnopt/nnopt/internal/fileio"
)

// TestUnlessCanceled: who waits for work that heeds no context is told of its end.
func TestUnlessCanceled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough, end := errors.New("enough"), make(chan struct{})
	defer close(end)
	if err := fileio.UnlessCanceled(ctx, func() error { return io.EOF }); err != io.EOF {
		t.Error(err)
	}
	if err := fileio.UnlessCanceled(ctx, func() error { cancel(enough); <-end; return nil }); err != enough {
		t.Error(err)
	}
}
