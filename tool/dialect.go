package tool

import (
	"context"
	"flag"
	"path/filepath"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool/repro"
)

// A dialect is a kind of graphs to the verbs that take files of them.
type dialect struct {
	// fields at the head of a file say what its graphs need from outside. The first one tells the
	// dialect; a file that has none is of the dialect without fields.
	fields []string
	// files are those of the fields that name a file, relative to the one that they are in.
	files []string
	// vocabulary returns the meaning of the names in rules.
	vocabulary func() pattern.Vocabulary
	// subjects declares the flags of what verbs take besides files of graphs. A dialect that comes
	// later is asked for what those before it do not claim.
	subjects func(flags *subjectFlags, fs *flag.FlagSet) *source
	// open returns the world of the graphs in a file with that head.
	open func(c *Console, name string, head *graphfile.File) (repro.World, error)
}

// A keeper is a world with something that a case needs and no file has.
type keeper interface {
	// keep writes it to a file beside that of the case, and names it in the case.
	keep(ctx context.Context, cas *repro.Case, name string) error
}

// dialects lists the dialects.
func (cfg *Config) dialects() []*dialect { return []*dialect{cfg.networks(), cfg.tensors()} }

// dialectOf returns the dialect of a file.
func (cfg *Config) dialectOf(head *graphfile.File) *dialect {
	var other *dialect
	for _, d := range cfg.dialects() {
		if len(d.fields) == 0 {
			other = d
		} else if head.Field(d.fields[0]) != "" {
			return d
		}
	}
	return other
}

// relocate makes the names of files in a case absolute, if the case moves to another folder. from is
// the file that it was read from.
func (cfg *Config) relocate(cas *repro.Case, from string) error {
	for _, d := range cfg.dialects() {
		for _, field := range d.files {
			file := note(cas, field)
			if file == "" || filepath.IsAbs(file) {
				continue
			}
			file, err := filepath.Abs(filepath.Join(filepath.Dir(from), file))
			if err != nil {
				return err
			}
			setNote(cas, field, file)
		}
	}
	return nil
}
