package tool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/pprof"
)

func profileVerb() Verb {
	return Verb{
		Name:     "profile",
		Args:     "FILE",
		Minus:    true,
		Synopsis: "show what the optimizer did and its cost",
		Detail: `
Optimizes the graphs of FILE, and prints what the optimizer recorded: as text in Theano's layout, as JSON, as the page of "$0 view"
without graphs, for "go tool pprof", or as a trace for Perfetto or chrome://tracing.`,
		Examples: `
$0 profile --format=json --output=before.json my.graph
$0 profile --diff=before.json --query=fast_compile my.graph`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			subject := &SubjectFlags{Passes: DeclareSelection(cfg, fs), Watch: DeclareWatch(fs), Runs: true}
			subject.declare(cfg, fs)
			format := fs.String("format", "text", "Output format: text, json, html, pprof or trace")
			output := fs.String("output", "-", "Output file")
			fs.Lookup("output").DefValue = "standard output"
			add := fs.String("add", "", "Add up this profile and these earlier ones (comma-separated files of --format=json)")
			diff := fs.String("diff", "", "Print the differences from an earlier profile (a file of --format=json) instead of the profile")
			runs := fs.Int("run", 0, "Execute it this many times on random inputs")
			threads := DeclareThreads(fs)
			return Taking(1, 1, cfg.arguments("profile"), func(ctx context.Context, c *Console, args []string) error {
				write := profileWriter(*format)
				if write == nil {
					return Usagef("--format=%s: want text, json, html, pprof or trace", *format)
				}
				if err := c.InVainIf(*diff != "", "beside --diff, which prints text", "format"); err != nil {
					return err
				}
				if err := c.InVainIf(*runs <= 0, "without --run", "threads"); err != nil {
					return err
				}
				if SameFile(args[0], *output) {
					return Usagef("%s is an input and would be overwritten", args[0])
				}
				f, err := subject.profile(ctx, c, args[0], *runs, threads.Of(1))
				if err != nil {
					return err
				}
				if err := addProfiles(f, *add); err != nil {
					return err
				}
				if *diff == "" && (*format == "pprof" || *format == "html") { // which are no text to change
					return WriteTo(ctx, fileio.Writer(ctx, c.Data), *output, func(w io.Writer) error { return write(f, w) })
				}
				if *diff == "" {
					return WriteTo(ctx, c.Stdout, *output, func(w io.Writer) error { return write(f, w) })
				}
				before, err := readProfile(*diff)
				if err != nil {
					return err
				}
				if f.Optimizer == nil {
					return ErrNotOptimized
				}
				return WriteTo(ctx, c.Stdout, *output, func(w io.Writer) error { return profile.WriteDiff(w, before.Optimizer, f.Optimizer) })
			})
		},
	}
}

// profile optimizes what an argument names.
func (f *SubjectFlags) profile(ctx context.Context, c *Console, arg string, runs, threads int) (*profile.Function, error) {
	source, err := f.sourceOf(c, arg)
	if err != nil {
		return nil, err
	}
	if source.Profile != nil {
		return source.Profile(ctx, c, arg, runs, threads)
	}
	if err := c.InVainIf(runs > 0, "for "+source.What+", which nothing runs", "run"); err != nil {
		return nil, err
	}
	s, err := source.Open(ctx, c, arg)
	if err != nil {
		return nil, err
	}
	return s.profile(ctx, c, arg, f.Watch)
}

// ErrNotOptimized says that a query selected nothing.
var ErrNotOptimized = errors.New("nothing was optimized, so there is no profile")

// readProfile reads an earlier profile of an optimizer.
func readProfile(name string) (*profile.Function, error) {
	f, err := readWith(name, "the profile", profile.ReadJSON)
	if err == nil && f.Optimizer == nil {
		err = fmt.Errorf("%s: has no profile of an optimizer", name)
	}
	return f, err
}

// addProfiles adds the optimizer profiles of earlier runs to f.
func addProfiles(f *profile.Function, names string) error {
	if names == "" {
		return nil
	}
	if f.Optimizer == nil {
		return ErrNotOptimized
	}
	all := []*profile.Record{f.Optimizer}
	for name := range strings.SplitSeq(names, ",") {
		earlier, err := readProfile(name)
		if err != nil {
			return err
		}
		all = append(all, earlier.Optimizer)
		f.CompileTime += earlier.CompileTime
		f.LinkTime += earlier.LinkTime
		f.Calls += earlier.Calls
		f.CallTime += earlier.CallTime
		for i := range f.Phases {
			for _, p := range earlier.Phases {
				if p.Name == f.Phases[i].Name {
					f.Phases[i].Time += p.Time
				}
			}
		}
	}
	f.Optimizer = profile.Merge(all...)
	return nil
}

// profileWriter returns the writer of a format, or nil if it is unknown.
func profileWriter(format string) func(*profile.Function, io.Writer) error {
	switch format {
	case "text":
		return (*profile.Function).WriteText
	case "json":
		return (*profile.Function).WriteJSON
	case "html":
		return writeProfilePage
	case "trace":
		return (*profile.Function).WriteTrace
	case "pprof":
		return func(f *profile.Function, w io.Writer) error {
			if f.Optimizer == nil {
				return ErrNotOptimized
			}
			return pprof.Write(w, f.Optimizer)
		}
	}
	return nil
}
