package networks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/tool"
)

// opener opens files by Kaldi's extended names: "-" is the console, and commands run
// only if the user allows it. Standard output is not buffered, because the reader of a
// pipe may wait for it.
func opener(ctx context.Context, c *tool.Console, commands bool) *kaldiio.Opener {
	return &kaldiio.Opener{Stdin: c.Stdin, Stdout: c.Data, Commands: commands, Context: ctx}
}

// model reads a model, with its transition model and priors if it has them. Unless it is nil,
// each is called with each component once it is read.
func (o *Options) model(c *tool.Console, files *kaldiio.Opener, name string, each func(component.Component) []float32) (*nnet3.AmNnetSimple, error) {
	f, err := files.OpenInput(name)
	if err != nil {
		return nil, err
	}
	am, err := nnet3.Loader{Types: o.Components, Each: each}.ReadModelFrom(f, name)
	if closeErr := f.Close(); err == nil {
		err = closeErr // the model was complete, but the command failed
	}
	return am, err
}

// warnOfStats says which components of a network lack statistics, and returns them.
func warnOfStats(c *tool.Console, name string, nn *nnet3.Nnet) []string {
	var lacking *nnet3.StatsError
	if errors.As(nn.CheckStats(), &lacking) {
		c.Say("%s: warning: %v", name, lacking)
		return lacking.Components
	}
	return nil
}

// warnOfFuture says if chunks of a stream lack frames that the outputs of a network use, see compile.CheckFuture.
func warnOfFuture(c *tool.Console, name string, nn *nnet3.Nnet, step int) {
	if err := compile.CheckFuture(nn, step); err != nil {
		c.Say("%s: warning: %v", name, err)
	}
}

// keepInput returns an error if writing a table would overwrite one of the inputs.
func keepInput(wspecifier string, inputs ...string) error {
	w, err := kaldiio.ParseWspecifier(wspecifier)
	if err != nil {
		return tool.Usagef("%w", err)
	}
	// Both names of ark,scp: are written. A wspecifier with a script alone writes to the files that
	// the script names, so the script is read.
	outputs := []string{w.Archive}
	if w.HasArchive {
		outputs = append(outputs, w.Script) // without an archive, the script is an input
	}
	keep := func(in string) error {
		for _, out := range outputs {
			if tool.SameFile(in, out) {
				return tool.Usagef("%s is an input and would be overwritten", in)
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

// eachScripted calls do for each file that a script names, once for consecutive lines
// with the same file, until the first error. It skips what is not a script; whoever
// reads it later reports that.
func eachScripted(script string, do func(string) error) error {
	if info, err := os.Stat(script); err != nil || !info.Mode().IsRegular() {
		return nil // a pipe can be read only once
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

// pipesHint adds to an error about a forbidden command how to allow it.
func pipesHint(err error) error {
	if errors.Is(err, kaldiio.ErrCommand) {
		return fmt.Errorf("%w (--allow-pipes allows it)", err)
	}
	return err
}
