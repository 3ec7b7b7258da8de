package networks

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/exec/refcase"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/display"
	"github.com/nnopt/nnopt/tool/networks/internal/measure"
)

// ablatingVerb is the verb passes, which also runs reference cases without each pass.
func ablatingVerb() tool.Verb {
	v := tool.PassesVerb()
	v.Args = "[DIR...]"
	v.Detail += `

With --ablation the arguments are folders of reference cases. They run without each of the passes for networks in turn; the result is
the tables of docs/nnet3-passes.md.`
	setup := v.Setup
	v.Setup = func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
		list := setup(cfg, fs)
		ablation := fs.Bool("ablation", false, "Print in Markdown the passes for networks, and the effect of leaving out each one on the reference cases in DIR...")
		return func(ctx context.Context, c *tool.Console, args []string) error {
			if !*ablation {
				return list(ctx, c, args)
			}
			for _, other := range []string{"as-pipeline", "explain", "rules"} {
				if err := c.Apart("ablation", other); err != nil {
					return err
				}
			}
			if err := c.InVain("beside --ablation", "query", "json"); err != nil {
				return err
			}
			db, err := cfg.Database()
			if err != nil {
				return err
			}
			return printAblation(ctx, c, db, args)
		}
	}
	return v
}

// An ablation holds sums over the reference cases.
type ablation struct {
	commands int
	bytes    int64
	// Seconds of optimizing and of running, each the best of a few runs.
	optimize, run float64
}

// ablationRuns is the number of times that everything is timed.
const ablationRuns = 5

// nnet3Entries lists the entries for networks.
func nnet3Entries(db *optdb.SequenceDB) []optdb.Listing {
	return slices.DeleteFunc(db.Entries(), func(l optdb.Listing) bool { return !slices.Contains(l.Tags, "nnet3") })
}

// printAblation prints two tables in Markdown: the entries for networks, and what
// the reference cases in the folders become without each of them.
func printAblation(ctx context.Context, c *tool.Console, db *optdb.SequenceDB, folders []string) error {
	cases, err := loadCases(folders)
	if err != nil {
		return err
	}
	entries := nnet3Entries(db)
	printEntries(c, entries)
	whole, err := db.Build(optdb.Include("fast_run"))
	if err != nil {
		return err
	}
	c.Print("\n| without | commands | peak bytes | optimizing | running |\n| --- | ---: | ---: | ---: | ---: |\n")
	for i, l := range entries {
		a, all, err := ablate(ctx, db, cases, whole, l.Name)
		if err != nil {
			return err
		}
		if i == 0 {
			c.Print("| (nothing) | %s | %s | | |\n", display.Thousands(all.commands), display.Thousands(all.bytes))
		}
		c.Print("| `%s` | %s | %s | %s | %s |\n", l.Name, percent(float64(a.commands), float64(all.commands)), percent(float64(a.bytes), float64(all.bytes)),
			percent(a.optimize, all.optimize), percent(a.run, all.run))
		if err := c.Stdout.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// percent formats the difference of a from b.
func percent(a, b float64) string { return fmt.Sprintf("%+.1f %%", 100*(a/b-1)) }

// printEntries prints the table of entries.
func printEntries(c *tool.Console, entries []optdb.Listing) {
	c.Print("| entry | position | tags | what it does | Kaldi's option |\n| --- | --- | --- | --- | --- |\n")
	for i := range entries {
		l := &entries[i]
		place := filepath.Dir(l.Path) // its group
		if l.Placed {
			place = strconv.FormatFloat(l.Position, 'g', -1, 64)
		}
		tags := slices.DeleteFunc(slices.Clone(l.Tags), func(t string) bool { return t == "nnet3" })
		option := strings.Join(passes.KaldiOptions(l.Name), "`, `")
		if option != "" {
			option = "`" + option + "`"
		}
		c.Print("| `%s` | %s | %s | %s | %s |\n", l.Name, place, strings.Join(tags, " "), strings.ReplaceAll(l.Doc, "|", "\\|"), option)
	}
}

func loadCases(folders []string) ([]*refcase.Case, error) {
	dirs, err := findCases(folders)
	if err != nil {
		return nil, err
	}
	var cases []*refcase.Case
	for _, dir := range dirs {
		c, err := refcase.LoadDir(dir)
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		return nil, tool.Usagef("no reference case: DIR... expected")
	}
	return cases, nil
}

// ablate runs the cases under fast_run, without an entry and with all of them.
func ablate(ctx context.Context, db *optdb.SequenceDB, cases []*refcase.Case, whole *optdb.Optimizer, entry string) (a, all ablation, err error) {
	q := optdb.Include("fast_run").Excluding(entry)
	// Everything is measured anew for each entry, with and without it in turns: times drift by more
	// than the effect of most passes over the minutes that the table takes.
	opt, err := db.Build(q)
	if err != nil {
		return a, all, err
	}
	for _, k := range cases {
		r := k.Run(ctx, q.String(), opt)
		if !r.OK {
			return a, all, fmt.Errorf("%s does not agree with Kaldi under %s: %w", k.Name, q, r.Err)
		}
		p, err := timeBoth(ctx, k, [2]*optdb.Optimizer{opt, whole}, [2]*ablation{&a, &all})
		if err != nil {
			return a, all, fmt.Errorf("%s under %s: %w", k.Name, q, err)
		}
		for i, sums := range [2]*ablation{&a, &all} {
			n := p[i].Optimized.Counts()
			sums.commands += n.Commands
			sums.bytes += n.MaxMemoryBytes
		}
	}
	return a, all, nil
}

// timeBoth adds the times of a case under two optimizers. They take turns, so that
// a busy machine slows down both.
func timeBoth(ctx context.Context, k *refcase.Case, opts [2]*optdb.Optimizer, sums [2]*ablation) (plans [2]*pipeline.Plan, err error) {
	in, err := pipeline.RandomValues(k.Net, k.Request, 1)
	if err != nil {
		return plans, err
	}
	var optimize, run [2]time.Duration
	for range ablationRuns {
		for i, opt := range opts {
			p, err := pipeline.Build(ctx, k.Net, k.Request, pipeline.Options{Optimizer: opt})
			if err != nil {
				return plans, err
			}
			plans[i], optimize[i] = p, quicker(optimize[i], p.OptimizeTime)
			pipeline.Prepare(p.Optimized, k.Net)
			prog, err := exec.NewProgram(p.Optimized, k.Net)
			if err != nil {
				return plans, err
			}
			times, err := measure.Runs(ctx, prog, k.Net, in, measure.Patience{Runs: 2}, exec.ComputerOptions{})
			if err != nil {
				return plans, err
			}
			run[i] = quicker(run[i], times.Best)
		}
	}
	for i, s := range sums {
		s.optimize += optimize[i].Seconds()
		s.run += run[i].Seconds()
	}
	return plans, nil
}

// quicker returns the smaller of two times; best is 0 if there is none yet.
func quicker(best, d time.Duration) time.Duration {
	if best == 0 {
		return d
	}
	return min(best, d)
}
