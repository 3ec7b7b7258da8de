package kaldiio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/nnopt/nnopt/internal/fileio"
)

// errFailed means that a command has failed: its input may be lost, its output incomplete.
var errFailed = errors.New("command failed")

// command is a running command.
type command struct {
	text   string
	cmd    *exec.Cmd
	ctx    context.Context // ends all waiting
	stderr beginning
	waited bool
	err    error // the result of wait
}

// startCommand starts a command with a pipe that the function connect makes.
func startCommand[T any](o *Opener, text string, connect func(*exec.Cmd) (T, error)) (c *command, pipe T, err error) {
	if !o.Commands {
		return nil, pipe, fmt.Errorf("%q: %w", text, ErrCommand)
	}
	c = &command{text: text, cmd: exec.Command("sh", "-c", text), ctx: o.context()}
	c.cmd.Stderr = &c.stderr
	if pipe, err = connect(c.cmd); err != nil {
		return nil, pipe, err
	}
	return c, pipe, c.cmd.Start()
}

// wait waits for the command to end or for its context to be done. Its error includes what the
// command wrote to standard error.
func (c *command) wait() error {
	if c.waited {
		return c.err
	}
	c.waited = true
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-c.ctx.Done():
		select {
		case err = <-done:
		case <-time.After(fileio.Grace):
			c.err = fmt.Errorf("command %q has not ended: %w", c.text, context.Cause(c.ctx))
			return c.err
		}
	}
	if err == nil {
		return nil
	}
	c.err = fmt.Errorf("%w: %q: %w", errFailed, c.text, err)
	if said := bytes.TrimSpace(c.stderr.text); len(said) > 0 {
		c.err = fmt.Errorf("%w: %s", c.err, said)
	}
	return c.err
}

// beginning keeps the first maxStderr bytes that are written to it.
type beginning struct{ text []byte }

const maxStderr = 4096

func (b *beginning) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), maxStderr-len(b.text))]...)
	return len(p), nil
}

// inputCommand is a command whose output is read.
type inputCommand struct {
	*command
	r    io.Reader
	pipe io.Closer
	stop func() bool
}

func (o *Opener) inputCommand(text string) (io.ReadCloser, error) {
	c, out, err := startCommand(o, text, (*exec.Cmd).StdoutPipe)
	if err != nil {
		return nil, err
	}
	in := &inputCommand{command: c, r: fileio.Reader(c.ctx, out), pipe: out}
	in.stop = context.AfterFunc(c.ctx, func() { c.cmd.Process.Kill() })
	return in, nil
}

// Read reads from the command. If the command failed, its error takes the place of io.EOF.
func (c *inputCommand) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err == io.EOF {
		if failed := c.wait(); failed != nil {
			err = failed
		}
	}
	return n, err
}

// Close ends the command. A broken pipe after an incomplete read is not an error.
func (c *inputCommand) Close() error {
	defer c.stop()
	if !c.waited {
		if n, _ := c.r.Read(make([]byte, 1)); n > 0 {
			c.pipe.Close()
			c.wait()
			return nil
		}
	}
	c.pipe.Close()
	return c.wait()
}

// outputCommand is a command that is written to.
type outputCommand struct {
	*command
	w    io.Writer
	pipe io.Closer
}

func (o *Opener) outputCommand(text string) (io.WriteCloser, error) {
	c, pipe, err := startCommand(o, text, func(cmd *exec.Cmd) (io.WriteCloser, error) {
		cmd.Stdout = o.stdout()
		return cmd.StdinPipe()
	})
	if err != nil {
		return nil, err
	}
	return &outputCommand{command: c, w: fileio.Writer(c.ctx, pipe), pipe: pipe}, nil
}

// Write writes to the command. If the command has ended, Write returns its error.
func (c *outputCommand) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if err == nil || c.ctx.Err() != nil {
		return n, err
	}
	c.pipe.Close()
	if failed := c.wait(); failed != nil {
		return n, failed
	}
	return n, fmt.Errorf("%w: %q ended before it had read everything: %w", errFailed, c.text, err)
}

// Close waits for the command to finish and returns its error.
func (c *outputCommand) Close() error {
	if c.waited {
		return c.err
	}
	err := c.pipe.Close()
	if failed := c.wait(); failed != nil {
		return failed
	}
	return err
}
