package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// opener opens files in Kaldi's sense: "-" is what the console has, and commands run only where the user allows them. What is written to standard output
// goes on at once, because a program at the other end of a pipe may wait for it.
func opener(ctx context.Context, c *console, commands bool) *kaldiio.Opener {
	return &kaldiio.Opener{Stdin: c.stdin, Stdout: c.data, Commands: commands, Context: ctx}
}

// readModel reads a model with all that belongs to it. Its parameters go from the file into their place.
func readModel(o *kaldiio.Opener, name string) (*nnet3.AmNnetSimple, error) {
	f, err := o.OpenInput(name)
	if err != nil {
		return nil, err
	}
	am, err := readModelFrom(f, name)
	if closeErr := f.Close(); err == nil {
		err = closeErr // of a command that failed, after a model that was whole
	}
	return am, err
}

func readModelFrom(f io.Reader, name string) (*nnet3.AmNnetSimple, error) {
	r, err := kaldiio.NewReader(f, name)
	if err != nil {
		return nil, err
	}
	if !r.Binary() {
		if first, err := r.PeekNonSpace(); err == nil && first != '<' {
			return nil, fmt.Errorf("%s is no model in Kaldi's format (\"nnopt init\" makes one of config lines)", name)
		}
	}
	return nnet3.ReadModel(r)
}

// sameFile reports whether two names are of one file that exists.
func sameFile(a, b string) bool {
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

// keepInput complains if writing a table would destroy one of the files that are read.
func keepInput(wspecifier string, inputs ...string) error {
	w, err := kaldiio.ParseWspecifier(wspecifier)
	if err != nil {
		return &usageError{err: err}
	}
	outputs := []string{w.Archive}
	if w.HasArchive {
		outputs = append(outputs, w.Script) // without an archive the script is read, not written
	}
	keep := func(in string) error {
		for _, out := range outputs {
			if sameFile(in, out) {
				return usagef("%s would be overwritten, and it is read", in)
			}
		}
		return nil
	}
	for _, in := range inputs {
		r, err := kaldiio.ParseRspecifier(in)
		if err == nil {
			in = r.Name
		}
		err = keep(in)
		if err == nil && r.Script {
			err = eachScripted(in, keep)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eachScripted calls do with each file that a script names, once for a run of lines with the same one, up to the first error. What can't be read as a
// script is none, and a line has at most bufio.MaxScanTokenSize bytes: who reads it will say so.
func eachScripted(script string, do func(string) error) error {
	if info, err := os.Stat(script); err != nil || !info.Mode().IsRegular() {
		return nil // a pipe can be read but once
	}
	f, err := os.Open(script)
	if err != nil {
		return nil
	}
	defer f.Close()
	last := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, err := kaldiio.ParseScriptLine(lines.Text())
		if err != nil {
			break
		}
		if name := line.File(); name != last {
			if err := do(name); err != nil {
				return err
			}
			last = name
		}
	}
	return nil
}

// pipesHint says what to do about a command that may not run.
func pipesHint(err error) error {
	if errors.Is(err, kaldiio.ErrCommand) {
		return fmt.Errorf("%w (--allow-pipes allows it)", err)
	}
	return err
}
