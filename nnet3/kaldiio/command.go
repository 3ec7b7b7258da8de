package kaldiio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/nnopt/nnopt/fileio"
)

// ErrFailed means that a command at the other end of a pipe has failed. Its input may be lost, its
// output incomplete.
var ErrFailed = errors.New("command failed")

// command is a running command.
type command struct {
	text   string
	cmd    *exec.Cmd
	stderr beginning
	waited bool
	err    error // the result of wait
}

// command prepares a command.
func (o *Opener) command(text string) (*command, error) {
	if !o.Commands {
		return nil, fmt.Errorf("%q: %w", text, ErrCommand)
	}
	c := &command{text: text, cmd: exec.Command("sh", "-c", text)}
	c.cmd.Stderr = &c.stderr
	return c, nil
}

// wait waits for the command to end or for ctx to be done. Its error includes what the command wrote
// to standard error.
func (c *command) wait(ctx context.Context) error {
	if c.waited {
		return c.err
	}
	c.waited = true
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(fileio.Grace):
			c.err = fmt.Errorf("command %q has not ended: %w", c.text, context.Cause(ctx))
			return c.err
		}
	}
	if err == nil {
		return nil
	}
	c.err = fmt.Errorf("%w: %q: %w", ErrFailed, c.text, err)
	if said := bytes.TrimSpace(c.stderr.text); len(said) > 0 {
		c.err = fmt.Errorf("%w: %s", c.err, said)
	}
	return c.err
}

// beginning keeps the first mostStderr bytes that are written to it.
type beginning struct{ text []byte }

const mostStderr = 4096

func (b *beginning) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), mostStderr-len(b.text))]...)
	return len(p), nil
}

// inputCommand is a command whose output is read.
type inputCommand struct {
	*command
	ctx  context.Context
	r    io.Reader
	pipe io.Closer
	stop func() bool
}

func (o *Opener) inputCommand(text string) (io.ReadCloser, error) {
	c, err := o.command(text)
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	ctx := o.context()
	in := &inputCommand{command: c, ctx: ctx, r: fileio.Reader(ctx, out), pipe: out}
	in.stop = context.AfterFunc(ctx, func() { c.cmd.Process.Kill() })
	return in, nil
}

// Read reads from the command. If the command failed, its error takes the place of io.EOF.
func (c *inputCommand) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err == io.EOF {
		if failed := c.wait(c.ctx); failed != nil {
			err = failed
		}
	}
	return n, err
}

// Close ends the command. The broken pipe of a command that was not read to its end is not an error.
func (c *inputCommand) Close() error {
	defer c.stop()
	if !c.waited {
		if n, _ := c.r.Read(make([]byte, 1)); n > 0 {
			c.pipe.Close()
			c.wait(c.ctx)
			return nil
		}
	}
	c.pipe.Close()
	return c.wait(c.ctx)
}

// outputCommand is a command that is written to.
type outputCommand struct {
	*command
	ctx  context.Context
	w    io.Writer
	pipe io.Closer
}

func (o *Opener) outputCommand(text string) (io.WriteCloser, error) {
	c, err := o.command(text)
	if err != nil {
		return nil, err
	}
	c.cmd.Stdout = o.stdout()
	pipe, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	ctx := o.context()
	return &outputCommand{command: c, ctx: ctx, w: fileio.Writer(ctx, pipe), pipe: pipe}, nil
}

// Write writes to the command. If the command has ended, Write returns its error.
func (c *outputCommand) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if err == nil || c.ctx.Err() != nil {
		return n, err
	}
	c.pipe.Close()
	if failed := c.wait(c.ctx); failed != nil {
		return n, failed
	}
	return n, fmt.Errorf("%w: %q ended before it had read everything: %w", ErrFailed, c.text, err)
}

// Close waits for the command to finish and returns its error.
func (c *outputCommand) Close() error {
	if c.waited {
		return c.err
	}
	err := c.pipe.Close()
	if failed := c.wait(c.ctx); failed != nil {
		return failed
	}
	return err
}
