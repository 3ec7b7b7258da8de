package tool

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/tool/internal/tune"
)

func tuneVerb() Verb {
	return Verb{
		Name:     "tune",
		Args:     "FILE",
		Minus:    true,
		Synopsis: "find the passes that pay on this machine, by measuring, and write them as a query",
		Detail: `
Tries what the database of passes knows, for one computation on random inputs: each pass that --query selects and that makes a rewrite
is left out, each pass and tag that it leaves out is added, and settings get other values. A choice runs in turns with the best so far
until it is decided beyond noise whether it saves a hundredth of the time. What pays, and pays again with both sides made anew, is kept.
At last the tuned query is compared with the one to begin with, and dropped if it does not pay. The result is a query with the figures
in comments, which --query @FILE reads.

Outputs keep their bits: a choice that changes them is not kept. Passes with a tag that promises less (int16, int8, limits, overflow,
reassoc, unsafe_nan) are tried only if --allow names the tag; then outputs may differ by --error.`,
		Examples: `
$0 tune --output my.query my.graph
$0 opt --query @my.query my.graph`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			// A query can't name the rules of flags, and nobody watches hundreds of runs of the optimizer.
			subject := &SubjectFlags{Passes: declareSelection(cfg, fs), Watch: &Watch{Most: -1}, Runs: true}
			subject.declare(cfg, fs)
			output := fs.String("output", "-", "Write the query to this file")
			fs.Lookup("output").DefValue = "standard output"
			allow := fs.String("allow", "", "Try passes with these tags, too (comma-separated)")
			most, seconds := 1e-4, 120.0
			number(fs, &most, "error", 0, 1, "The most that outputs may differ beside --allow, relative to their norm")
			number(fs, &seconds, "seconds", 1e-3, 1e6, "How long to try")
			return Taking(1, 1, cfg.arguments("tune"), func(ctx context.Context, c *Console, args []string) error {
				if err := c.InVainIf(*allow == "", "without --allow", "error"); err != nil {
					return err
				}
				if SameFile(args[0], *output) {
					return Usagef("%s is an input and would be overwritten", args[0])
				}
				tags, err := allowed(*allow)
				if err != nil {
					return err
				}
				o := tune.Options{Error: most, Allow: tags, Time: time.Duration(seconds * float64(time.Second))}
				r, err := subject.tune(ctx, c, args[0], o)
				if err != nil {
					return err
				}
				return WriteTo(ctx, c.Stdout, *output, func(w io.Writer) error { return r.Write(w, tuneHead(cfg, args[0], o)...) })
			})
		},
	}
}

// number declares a flag for a number between least and most, with the default that is there.
func number(fs *flag.FlagSet, value *float64, name string, least, most float64, usage string) {
	fs.Func(name, usage, func(text string) error {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= least && x <= most) {
			return fmt.Errorf("not a number between %v and %v", least, most)
		}
		*value = x
		return nil
	})
	fs.Lookup(name).DefValue = strconv.FormatFloat(*value, 'g', -1, 64)
}

// allowed reads the tags of --allow.
func allowed(text string) ([]string, error) {
	tags := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	for _, tag := range tags {
		if known := tune.Promises(); !slices.Contains(known, tag) {
			return nil, Usagef("--allow: %s is no tag that has to be allowed%s; there are %s", fileio.Excerpt(tag, 0), spell.Hint(tag, known), strings.Join(known, ", "))
		}
	}
	return tags, nil
}

// tune tunes what an argument names.
func (f *SubjectFlags) tune(ctx context.Context, c *Console, arg string, o tune.Options) (*tune.Result, error) {
	source, err := f.sourceOf(c, arg)
	if err != nil {
		return nil, err
	}
	if source.Tune == nil {
		return nil, Usagef("%s can't be tuned, since nothing runs it", source.What)
	}
	s, err := source.Tune(ctx, c, arg)
	if err != nil {
		return nil, err
	}
	_, opt, err := f.Passes.Build()
	if err != nil {
		return nil, err
	}
	o.Database, o.Query = f.Passes.db, opt.Query()
	o.Decided = func(found *tune.Finding) { c.Say("%v", found) }
	return o.Tune(ctx, s)
}

// tuneHead returns the first lines of a tuned query.
func tuneHead(cfg *Config, arg string, o tune.Options) []string {
	lines := []string{
		fmt.Sprintf("%s, tuned by %s %s on %s", fileio.PlainName(arg), cfg.Name, "tune", time.Now().Format(time.DateOnly)),
		fmt.Sprintf("machine: %s%d of %d cores, %s/%s", processor(), runtime.GOMAXPROCS(0), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
	}
	if len(o.Allow) > 0 {
		lines = append(lines, fmt.Sprintf("allowed: %s, outputs may differ by %.1e", strings.Join(o.Allow, ", "), o.Error))
	}
	return lines
}

// processor returns the name of the processor and a comma, or "" where the system does not say.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value) + ", "
		}
	}
	return ""
}
