package fileio

import "context"

// UnlessCanceled returns what work returns, or the cause if the context is canceled before. An op
// may take minutes and knows no context, so work then goes on in its goroutine until the program
// ends.
func UnlessCanceled(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
