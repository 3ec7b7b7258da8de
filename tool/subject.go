package tool

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tool/view"
)

// A subject is what a verb works on: a network and a request, an expression, or a file of
// graphs.
type subject struct {
	file    graphfile.File // with graphs that no pass has changed
	dialect graphfile.Dialect
	opt     *optdb.Optimizer
	// failed adds a reproducer to an error of the optimizer, about the graph of that number.
	failed func(ctx context.Context, err error, segment int) error
}

// subjectFlags are the flags that select passes and say what the subject is.
type subjectFlags struct {
	passes  *passFlags
	watch   *watchFlags
	sources []*source
}

// A source makes the subjects of a dialect.
type source struct {
	what  string   // a subject: "a network"
	flags []string // those that have a meaning for its subjects alone
	// claims reports whether an argument looks like a subject.
	claims func(arg string) bool
	open   func(ctx context.Context, c *Console, arg string) (*subject, error)
	// record optimizes a subject for a page, and says in what the page may ask for again.
	record func(ctx context.Context, c *Console, arg string, in *view.Input) (*view.Subject, error)
}

func declareSubject(cfg *Config, fs *flag.FlagSet) *subjectFlags {
	f := &subjectFlags{passes: declarePasses(cfg, fs), watch: declareWatch(fs)}
	for _, d := range cfg.dialects() {
		f.sources = append(f.sources, d.subjects(f, fs))
	}
	return f
}

// load returns the subject that an argument names.
func (f *subjectFlags) load(ctx context.Context, c *Console, arg string) (*subject, error) {
	s, err := f.sourceOf(c, arg)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, c, arg)
}

// sourceOf returns the source of the first dialect that claims an argument. Flags of other dialects
// are errors.
func (f *subjectFlags) sourceOf(c *Console, arg string) (*source, error) {
	for _, s := range f.sources {
		if !s.claims(arg) {
			continue
		}
		for _, other := range f.sources {
			if err := c.inVainIf(other != s, "for "+s.what, other.flags...); err != nil {
				return nil, err
			}
		}
		return s, nil
	}
	return nil, Usagef("%s is nothing that can be optimized here", fileio.Excerpt(arg, 0))
}

// fileName is what files are called that verbs take in place of an expression. No expression looks
// like that.
var fileName = regexp.MustCompile(`^[^\s()]+\.(config|graph|html|json|mdl|raw|txt)$`)

// missingFile returns an error if an argument is the name of a file that there is not, rather than
// an expression.
func missingFile(arg string) error {
	if !fileName.MatchString(arg) {
		return nil
	}
	_, err := os.Stat(arg)
	return err
}

func (s *subject) setGraphs(graphs []*fgraph.FunctionGraph) {
	s.file.Graph, s.file.More = graphs[0], graphs[1:]
}

// readText reads a graph file as text. "-" is standard input.
func readText(c *Console, name string) (text string, head *graphfile.File, err error) {
	var data []byte
	if name == "-" {
		data, err = fileio.ReadAll(c.Stdin, "standard input", fileio.MaxText)
	} else {
		data, err = fileio.ReadFile(name, fileio.MaxText)
	}
	if err != nil {
		return "", nil, err
	}
	if head, err = graphfile.ParseHead(name, string(data)); err != nil {
		return "", nil, fmt.Errorf("%s is no graph file: %w", name, err)
	}
	return string(data), head, nil
}
