package kaldiio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

// ErrCommand means that a file name is a command, and that the Opener may not run commands.
var ErrCommand = errors.New("running commands is not allowed here")

// Opener opens files and pipes by Kaldi's names. The zero value opens files, os.Stdin and
// os.Stdout. It refuses to run commands, because they may come from inside a script.
type Opener struct {
	Stdin    io.Reader // nil: os.Stdin
	Stdout   io.Writer // nil: os.Stdout
	Commands bool      // run names like "zcat a.gz |" and "| gzip -c > b.gz" with sh
	// Context ends waiting for a FIFO, standard input or a command. nil: nothing ends it.
	Context context.Context
	// Remote opens a file whose name has a scheme, such as gs://bucket/feats.ark. The size of the
	// file is known if what it returns has a method Len() int, of the bytes that follow. nil: such
	// names are those of files.
	Remote func(ctx context.Context, name string) (io.ReadSeekCloser, error)

	hasty bool // in tests of very many tables: nothing is synced
}

// HasScheme reports whether a name begins with a scheme: a letter, letters, digits and "+-.", and
// "://".
func HasScheme(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	for i, c := range []byte(scheme) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(c))) {
			return false
		}
	}
	return ok && scheme != ""
}

func (o *Opener) context() context.Context {
	if o.Context == nil {
		return context.Background()
	}
	return o.Context
}

func (o *Opener) stdout() io.Writer {
	if o.Stdout == nil {
		return os.Stdout
	}
	return o.Stdout
}

// OpenInput opens an rxfilename: "-" or "" for standard input, "command |" for the output of a
// command, "file:123" for a file from byte 123 on, anything else for a file, or for o.Remote if it has
// a scheme. The error wraps ErrSpecifier for a malformed name, ErrCommand for a command that may not run.
func (o *Opener) OpenInput(rxfilename string) (io.ReadCloser, error) {
	switch {
	case rxfilename == "" || rxfilename == "-":
		in := o.Stdin
		if in == nil {
			in = os.Stdin
		}
		return io.NopCloser(fileio.Reader(o.context(), in)), nil
	case rxfilename[0] == '|':
		return nil, badName(rxfilename, "a command to read from has its bar at the end")
	case strings.HasSuffix(rxfilename, "|"):
		return o.inputCommand(strings.TrimSuffix(rxfilename, "|"))
	}
	if err := checkFile(rxfilename); err != nil {
		return nil, err
	}
	name, offset := splitOffset(rxfilename)
	f, err := o.openFile(name)
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

func (o *Opener) openFile(name string) (io.ReadSeekCloser, error) {
	if o.Remote != nil && HasScheme(name) {
		return o.Remote(o.context(), name)
	}
	return fileio.Open(o.context(), name)
}

func badName(name, why string) error {
	return fmt.Errorf("%q: %s: %w", fileio.Excerpt(name, 0), why, ErrSpecifier)
}

// checkFile returns an error for a text that can't name a file.
func checkFile(name string) error {
	switch {
	case name != strings.TrimSpace(name):
		return badName(name, "the name begins or ends with white space")
	case strings.Contains(name, "|"):
		return badName(name, "there is a bar in the middle")
	case isTable(name):
		return badName(name, "this is a table, but the name of a file is wanted")
	}
	return nil
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

// openOutput opens a wxfilename: "-" or "" for standard output, "| command" for the input of a
// command, anything else for a file, which is created or emptied.
func (o *Opener) openOutput(wxfilename string) (io.WriteCloser, error) {
	switch {
	case wxfilename == "" || wxfilename == "-":
		return nopCloser{fileio.Writer(o.context(), o.stdout())}, nil
	case wxfilename[0] == '|':
		return o.outputCommand(wxfilename[1:])
	}
	if err := checkOutputFile(wxfilename); err != nil {
		return nil, err
	}
	return fileio.Create(o.context(), wxfilename)
}

// WriteOutput calls write with the output that a wxfilename names: "-" or "" for standard output,
// "| command" for the input of a command, anything else for a file. Like fileio.Write it leaves a
// file either complete or as it was.
func (o *Opener) WriteOutput(wxfilename string, write func(io.Writer) error) error {
	if wxfilename != "" && wxfilename != "-" && wxfilename[0] != '|' {
		if err := checkOutputFile(wxfilename); err != nil {
			return err
		}
		return fileio.Write(o.context(), wxfilename, write)
	}
	to, err := o.openOutput(wxfilename)
	if err != nil {
		return err
	}
	err = write(to)
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	return err
}

func checkOutputFile(wxfilename string) error {
	if strings.HasSuffix(wxfilename, "|") {
		return badName(wxfilename, "a command to write to has its bar in front")
	}
	return checkFile(wxfilename)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
