package kaldiio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fileio"
)

// Opener opens what Kaldi's file names stand for. The zero value opens files, os.Stdin and os.Stdout, and refuses to run
// commands, which may come from the inside of a script.
type Opener struct {
	Stdin    io.Reader // nil: os.Stdin
	Stdout   io.Writer // nil: os.Stdout
	Commands bool      // run file names that are commands, "zcat a.gz |" and "| gzip -c > b.gz", with sh
	// Context ends every wait for what is opened here: a FIFO without another end, standard input, a command. nil: nothing does.
	Context context.Context
}

func (o *Opener) context() context.Context {
	if o.Context == nil {
		return context.Background()
	}
	return o.Context
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
		in := o.Stdin
		if in == nil {
			in = os.Stdin
		}
		return io.NopCloser(fileio.Reader(o.context(), in)), nil
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
	f, err := fileio.Open(o.context(), name)
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

// OpenOutput opens a wxfilename: "-" or "" is standard output, "| command" the input of a command, anything else a file,
// which is made or emptied.
func (o *Opener) OpenOutput(wxfilename string) (io.WriteCloser, error) {
	if err := checkOutput(wxfilename); err != nil {
		return nil, err
	}
	switch {
	case wxfilename == "" || wxfilename == "-":
		return nopCloser{fileio.Writer(o.context(), o.stdout())}, nil
	case wxfilename[0] == '|':
		return o.outputCommand(wxfilename[1:])
	}
	return fileio.Create(o.context(), wxfilename)
}

// WriteOutput has write write what a wxfilename stands for, from the beginning to the end. A file is as fileio.Write leaves it: whole, or as it was.
func (o *Opener) WriteOutput(wxfilename string, write func(io.Writer) error) error {
	if err := checkOutput(wxfilename); err != nil {
		return err
	}
	if wxfilename != "" && wxfilename != "-" && wxfilename[0] != '|' {
		return fileio.Write(o.context(), wxfilename, write)
	}
	to, err := o.OpenOutput(wxfilename)
	if err != nil {
		return err
	}
	err = write(to)
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (o *Opener) stdout() io.Writer {
	if o.Stdout == nil {
		return os.Stdout
	}
	return o.Stdout
}

// checkOutput complains about what is no wxfilename.
func checkOutput(wxfilename string) error {
	bad := func(why string) error {
		return fmt.Errorf("%q: %s: %w", wxfilename, why, ErrSpecifier)
	}
	switch {
	case wxfilename == "" || wxfilename[0] == '|':
		return nil
	case strings.HasSuffix(wxfilename, "|"):
		return bad("a command to write to has its bar in front")
	case wxfilename != strings.TrimSpace(wxfilename):
		return bad("there is space at an end")
	case strings.Contains(wxfilename, "|"):
		return bad("there is a bar in the middle")
	case isTable(wxfilename):
		return bad("this is a table, but the name of a file is wanted")
	}
	return nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
