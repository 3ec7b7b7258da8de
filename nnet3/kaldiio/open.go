package kaldiio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Opener opens what Kaldi's file names stand for. The zero value opens files, os.Stdin and os.Stdout, and refuses to run
// commands, which may come from the inside of a script.
type Opener struct {
	Stdin    io.Reader // nil: os.Stdin
	Stdout   io.Writer // nil: os.Stdout
	Commands bool      // run file names that are commands, "zcat a.gz |" and "| gzip -c > b.gz", with sh
}

// ErrCommand means that a file name is a command, and that the Opener may not run any.
var ErrCommand = errors.New("running commands is not allowed here")

// OpenInput opens an rxfilename: "-" or "" is standard input, "command |" the output of a command, "file:123" a file from
// byte 123 on, anything else a file.
func (o *Opener) OpenInput(rxfilename string) (io.ReadCloser, error) {
	bad := func(why string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("%q: %s: %w", rxfilename, why, ErrSpecifier)
	}
	if rxfilename == "" || rxfilename == "-" {
		if o.Stdin != nil {
			return io.NopCloser(o.Stdin), nil
		}
		return io.NopCloser(os.Stdin), nil
	}
	switch {
	case rxfilename[0] == '|':
		return bad("a command to read from has its bar at the end")
	case strings.HasSuffix(rxfilename, "|"):
		return o.inputCommand(strings.TrimSuffix(rxfilename, "|"))
	case rxfilename != strings.TrimSpace(rxfilename):
		return bad("there is space at an end")
	case strings.Contains(rxfilename, "|"):
		return bad("there is a bar in the middle")
	case isTable(rxfilename):
		return bad("this is a table, but the name of a file is wanted")
	}
	name, offset := splitOffset(rxfilename)
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if offset > 0 {
		if _, err := f.Seek(offset, io.SeekStart); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// isTable reports whether a name looks like an rspecifier.
func isTable(name string) bool {
	options, _, ok := strings.Cut(name, ":")
	if !ok {
		return false
	}
	for o := range strings.SplitSeq(options, ",") {
		if o == "ark" || o == "scp" {
			return true
		}
	}
	return false
}

// splitOffset splits "file:123" into name and offset.
func splitOffset(rxfilename string) (name string, offset int64) {
	i := strings.LastIndexByte(rxfilename, ':')
	if i < 0 || i == len(rxfilename)-1 || strings.Trim(rxfilename[i+1:], "0123456789") != "" {
		return rxfilename, 0
	}
	offset, err := strconv.ParseInt(rxfilename[i+1:], 10, 64)
	if err != nil {
		return rxfilename, 0
	}
	return rxfilename[:i], offset
}

// command is a running command, of which one end of a pipe is ours.
type command struct {
	io.Reader
	pipe   io.Closer
	cmd    *exec.Cmd
	stderr *bytes.Buffer
}

func (o *Opener) inputCommand(text string) (io.ReadCloser, error) {
	if !o.Commands {
		return nil, fmt.Errorf("%q: %w", text, ErrCommand)
	}
	c := &command{cmd: exec.Command("sh", "-c", text), stderr: new(bytes.Buffer)}
	c.cmd.Stderr = c.stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.Reader, c.pipe = out, out
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends the command. A reader that stops early makes the command fail with a broken pipe, which is no error.
func (c *command) Close() error {
	n, _ := io.Copy(io.Discard, io.LimitReader(c.Reader, 1))
	c.pipe.Close()
	if err := c.cmd.Wait(); err != nil && n == 0 {
		return fmt.Errorf("command %q: %w: %s", c.cmd.Args[2], err, bytes.TrimSpace(c.stderr.Bytes()))
	}
	return nil
}

// OpenOutput opens a wxfilename: "-" or "" is standard output, "| command" the input of a command, anything else a file,
// which is made or emptied.
func (o *Opener) OpenOutput(wxfilename string) (io.WriteCloser, error) {
	bad := func(why string) (io.WriteCloser, error) {
		return nil, fmt.Errorf("%q: %s: %w", wxfilename, why, ErrSpecifier)
	}
	if wxfilename == "" || wxfilename == "-" {
		if o.Stdout != nil {
			return nopCloser{o.Stdout}, nil
		}
		return nopCloser{os.Stdout}, nil
	}
	switch {
	case wxfilename[0] == '|':
		return o.outputCommand(wxfilename[1:])
	case strings.HasSuffix(wxfilename, "|"):
		return bad("a command to write to has its bar in front")
	case wxfilename != strings.TrimSpace(wxfilename):
		return bad("there is space at an end")
	case strings.Contains(wxfilename, "|"):
		return bad("there is a bar in the middle")
	case isTable(wxfilename):
		return bad("this is a table, but the name of a file is wanted")
	}
	return os.Create(wxfilename)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// outputPipe is a running command that we write to.
type outputPipe struct {
	io.WriteCloser
	cmd    *exec.Cmd
	stderr *bytes.Buffer
}

func (o *Opener) outputCommand(text string) (io.WriteCloser, error) {
	if !o.Commands {
		return nil, fmt.Errorf("%q: %w", text, ErrCommand)
	}
	p := &outputPipe{cmd: exec.Command("sh", "-c", text), stderr: new(bytes.Buffer)}
	p.cmd.Stderr = p.stderr
	p.cmd.Stdout = o.Stdout
	if o.Stdout == nil {
		p.cmd.Stdout = os.Stdout
	}
	var err error
	if p.WriteCloser, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// Close lets the command finish.
func (p *outputPipe) Close() error {
	err := p.WriteCloser.Close()
	if werr := p.cmd.Wait(); werr != nil {
		return fmt.Errorf("command %q: %w: %s", p.cmd.Args[2], werr, bytes.TrimSpace(p.stderr.Bytes()))
	}
	return err
}
