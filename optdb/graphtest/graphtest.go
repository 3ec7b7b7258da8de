package graphtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// ErrCase is wrapped by the errors about cases that can't be run.
var ErrCase = errors.New("bad case")

// ErrResult is wrapped by the errors about results that differ from those in the file.
var ErrResult = errors.New("another result")

// A Config says how the cases of a file are run.
type Config struct {
	// Dialect is how graphs are written.
	Dialect graphfile.Dialect
	// Open, unless nil, returns the dialect of a case in place of Dialect. It may look at fields,
	// such as the name of a network. folder is that of the file.
	Open func(folder string, head *graphfile.File) (graphfile.Dialect, error)
	// Database is what the field query selects from.
	Database *optdb.SequenceDB
	// Passes are what the field passes names. See rewrite.In2Out for rules.
	Passes []rewrite.GraphRewriter
	// Update writes the results to the files. Tests set it by a flag of their own.
	Update bool
}

// Run runs the cases of the files that match a pattern, such as "testdata/*.graph", each as a
// subtest. It is a failure if no file matches.
func Run(t *testing.T, pattern string, cfg Config) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no file matches %s: %v", pattern, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			updated, err := Check(t.Context(), name, string(text), cfg)
			if cfg.Update && updated != string(text) {
				if err := os.WriteFile(name, []byte(updated), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			for _, err := range unjoin(err) {
				if !cfg.Update || !errors.Is(err, ErrResult) {
					t.Error(err)
				}
			}
		})
	}
}

// unjoin returns the parts of an error that errors.Join made.
func unjoin(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// Check runs the cases of a text. name names it in errors. It returns the text with the results
// that came out, and an error that joins those of the cases, each of which wraps ErrCase, ErrResult
// or both.
func Check(ctx context.Context, name, text string, cfg Config) (updated string, err error) {
	var b strings.Builder
	var errs []error
	line := 1
	cases := split(text)
	for i, c := range cases {
		c.name, c.first = name, line
		line += strings.Count(c.title+c.text, "\n")
		if i == 0 && len(cases) > 1 && onlyComments(c.text) {
			b.WriteString(c.text)
			continue
		}
		got, err := c.check(ctx, &cfg)
		if err != nil {
			errs = append(errs, err)
		}
		b.WriteString(c.title + got)
	}
	return b.String(), errors.Join(errs...)
}

const (
	caseMark   = "==="
	resultMark = "---"
)

// A testCase is a part of a file.
type testCase struct {
	name  string // of the file
	first int    // the line where it begins
	title string // the line of caseMark, empty in front of the first case
	text  string
}

// split divides a text at the lines of caseMark.
func split(text string) []testCase {
	cases := []testCase{{}}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, caseMark) {
			cases = append(cases, testCase{title: line})
			continue
		}
		c := &cases[len(cases)-1]
		c.text += line
	}
	return cases
}

// onlyComments reports whether a text has no lines but comments and empty ones.
func onlyComments(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}

// check runs a case. It returns the text with the result that came out.
func (c *testCase) check(ctx context.Context, cfg *Config) (string, error) {
	input, want, _ := strings.Cut("\n"+c.text, "\n"+resultMark+"\n")
	input = strings.TrimPrefix(input, "\n")
	where := c.name
	if title := strings.TrimSpace(strings.Trim(strings.TrimSpace(c.title), "=")); title != "" {
		where += ": " + title
	}
	fail := func(kind error, format string, args ...any) error {
		return fmt.Errorf("%s:%d: %w: %w", where, c.first, kind, fmt.Errorf(format, args...))
	}
	padded := strings.Repeat("\n", c.first-1+strings.Count(c.title, "\n")) + input // so that errors have the line
	head, err := graphfile.ParseHead(c.name, padded)
	if err != nil {
		return c.text, fail(ErrCase, "%w", err)
	}
	got, fired, err := run(ctx, c.name, padded, head, cfg)
	wanted := head.Field("error")
	switch {
	case errors.Is(err, ErrCase):
		return c.text, fmt.Errorf("%s:%d: %w", where, c.first, err)
	case err != nil && (wanted == "" || !strings.Contains(err.Error(), wanted)):
		return c.text, fail(ErrCase, "the passes fail: %w", err)
	case err == nil && wanted != "":
		return c.text, fail(ErrCase, "no error comes out, want %q", wanted)
	case err != nil:
		return c.text, nil
	}
	updated := strings.TrimRight(input, "\n") + "\n" + resultMark + "\n" + got
	var errs []error
	for _, name := range names(head.Field("expect")) {
		if !fired[name] {
			errs = append(errs, fail(ErrCase, "%s makes no rewrite", name))
		}
	}
	for _, name := range names(head.Field("expect-not")) {
		if fired[name] {
			errs = append(errs, fail(ErrCase, "%s makes a rewrite", name))
		}
	}
	if strings.TrimSpace(want) != strings.TrimSpace(got) {
		errs = append(errs, fail(ErrResult, "got\n%swant\n%s", got, want))
	}
	if len(errs) == 1 {
		return updated, errs[0]
	}
	return updated, errors.Join(errs...)
}

// names splits a list at commas and spaces.
func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// run reads a graph, runs the passes, and returns the result as text. fired has the names of the
// rules and passes that made a rewrite.
func run(ctx context.Context, name, text string, head *graphfile.File, cfg *Config) (result string, fired map[string]bool, err error) {
	d := cfg.Dialect
	if cfg.Open != nil {
		if d, err = cfg.Open(filepath.Dir(name), head); err != nil {
			return "", nil, fmt.Errorf("%w: %w", ErrCase, err)
		}
	}
	f, err := graphfile.Parse(name, text, d)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrCase, err)
	}
	r, err := rewriter(head, cfg)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrCase, err)
	}
	fired = make(map[string]bool)
	opts := rewrite.OptionsFrom(ctx)
	opts.Check = true
	opts.Trace = func(e rewrite.Event) {
		if e.Err == nil {
			fired[e.Rule], fired[e.Pass] = true, true
		}
	}
	f.Head = nil
	for _, g := range f.Graphs() {
		if err := rewrite.Run(rewrite.WithOptions(ctx, opts), r, g, nil); err != nil {
			return "", nil, err
		}
		if err := g.Check(); err != nil {
			return "", nil, err
		}
	}
	if head.Field("sections") != "yes" {
		withoutSections(f)
	}
	result, err = graphfile.Format(f, d)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrCase, err)
	}
	return result, fired, err
}

// withoutSections replaces the graphs by copies without features.
func withoutSections(f *graphfile.File) {
	var copies []*fgraph.FunctionGraph
	for _, g := range f.Graphs() {
		c, _ := g.Clone()
		copies = append(copies, c)
	}
	f.Graph, f.More = copies[0], copies[1:]
}

// rewriter returns what the fields query and passes ask for, one after the other.
func rewriter(head *graphfile.File, cfg *Config) (rewrite.GraphRewriter, error) {
	var members []rewrite.Member
	if text := head.Field("query"); text != "" {
		if cfg.Database == nil {
			return nil, errors.New("there is no database for the field query")
		}
		q, err := optdb.ParseQuery(text)
		if err != nil {
			return nil, err
		}
		opt, err := cfg.Database.Build(q)
		if err != nil {
			return nil, err
		}
		members = append(members, rewrite.Member{Name: "query", Rewriter: opt})
	}
	for _, name := range names(head.Field("passes")) {
		i := slices.IndexFunc(cfg.Passes, func(r rewrite.GraphRewriter) bool { return rewrite.Describe(r).Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no pass %s", name)
		}
		members = append(members, rewrite.Member{Name: name, Rewriter: cfg.Passes[i]})
	}
	if len(members) == 0 {
		return nil, errors.New("neither the field query nor the field passes says what to do")
	}
	if len(members) == 1 {
		return members[0].Rewriter, nil
	}
	return &rewrite.Sequence{Name: "passes", Members: members}, nil
}
