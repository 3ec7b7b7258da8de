package tool

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fileio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// watchFlags are the flags for tracing and limiting the optimizer.
type watchFlags struct {
	trace  string
	whyNot string
	most   int
}

// declareWatch declares the flags.
func declareWatch(fs *flag.FlagSet) *watchFlags {
	f := new(watchFlags)
	fs.StringVar(&f.trace, "trace", "", "Print every rewrite by these passes and rules (comma-separated, or \"all\")")
	fs.StringVar(&f.whyNot, "why-not", "", "Say why this rule does not fire; RULE@TEXT looks only at nodes that contain TEXT")
	fs.IntVar(&f.most, "max-rewrites", -1, "Stop after this many rewrites, unless negative; a decision about storage counts as one. Bisect over it to find a harmful rewrite")
	return f
}

// budget returns the most rewrites, negative for any number.
func (f *watchFlags) budget() int {
	if f == nil {
		return -1
	}
	return f.most
}

// A watch is one run with watchFlags.
type watch struct {
	names    []string        // of --trace
	told     map[string]bool // names that made a rewrite
	rule, at string          // of --why-not
	fired    int
	misses   []miss
	index    map[miss]int // place in misses
}

// A miss is a reason not to fire, at applies with the same text.
type miss struct {
	pass, at, why string
	times         int
}

// start returns the context for a run, and a function to call after it.
func (f *watchFlags) start(ctx context.Context, c *Console, opt *optdb.Optimizer) (context.Context, func()) {
	if f == nil || f.trace == "" && f.whyNot == "" && f.most < 0 {
		return ctx, func() {}
	}
	w := &watch{told: make(map[string]bool), index: make(map[miss]int)}
	w.rule, w.at, _ = strings.Cut(f.whyNot, "@")
	w.names = strings.FieldsFunc(f.trace, func(r rune) bool { return r == ',' || r == ' ' })
	all := len(w.names) > 0 && w.names[0] == "all"
	tell := rewrite.TraceTo(fileio.NewPlainWriter(c.Stderr))
	opts := rewrite.Options{Trace: func(e rewrite.Event) {
		w.event(e)
		if all || slices.Contains(w.names, e.Pass) || slices.Contains(w.names, e.Rule) {
			w.told[e.Pass], w.told[e.Rule] = true, true
			tell(e)
		}
	}}
	if w.rule != "" {
		opts.WhyNot = w.miss
	}
	if !all {
		opts.TraceOnly = append(slices.Clone(w.names), w.rule)
	}
	if f.most >= 0 {
		opts.Allow = rewrite.Budget(f.most)
	}
	return rewrite.WithOptions(ctx, opts), func() { w.tell(c, opt) }
}

// event records a rewrite for --why-not.
func (w *watch) event(e rewrite.Event) {
	switch {
	case e.Rule != w.rule:
	case e.Err == nil:
		w.fired++
	default:
		w.note(e.Pass, e.Apply, fmt.Sprintf("refused: %v", e.Err))
	}
}

func (w *watch) miss(m rewrite.Miss) {
	if m.Rule == w.rule {
		w.note(m.Pass, m.Apply, m.Text)
	}
}

func (w *watch) note(pass string, n *fgraph.Apply, why string) {
	at := ""
	if n != nil {
		at = n.String()
	}
	if !strings.Contains(at, w.at) {
		return
	}
	key := miss{pass: pass, at: at, why: why}
	i, ok := w.index[key]
	if !ok {
		i = len(w.misses)
		w.index[key] = i
		w.misses = append(w.misses, key)
	}
	w.misses[i].times++
}

// mostMisses is the number of reasons that --why-not prints.
const mostMisses = 100

// tell prints the reasons of --why-not, and the names of --trace without a rewrite.
func (w *watch) tell(c *Console, opt *optdb.Optimizer) {
	for _, name := range w.names {
		switch {
		case name == "all" || w.told[name]:
		case opt.Selected(name):
			c.Say("trace: no rewrite by %s", name)
		default:
			c.Say("trace: no rewrite by %s", opt.Explain(name))
		}
	}
	if w.rule == "" {
		return
	}
	if !opt.Selected(w.rule) && w.fired == 0 && len(w.misses) == 0 { // a rule of a walk is no entry
		c.Say("why not: %s", opt.Explain(w.rule))
		return
	}
	for i, m := range w.misses {
		if i == mostMisses {
			c.Say("why not: %s: %d more reasons; %s@TEXT prints those of some nodes", w.rule, len(w.misses)-i, w.rule)
			break
		}
		times := ""
		if m.times > 1 {
			times = fmt.Sprintf(" (%d times)", m.times)
		}
		c.Say("why not: %s/%s: at %s: %s%s", m.pass, w.rule, m.at, m.why, times)
	}
	switch {
	case w.fired > 0:
		c.Say("%s fired %d times", w.rule, w.fired)
	case len(w.misses) == 0:
		c.Say("why not: %s: no reason: there is no node with an op that it tracks, or it gives no reasons", w.rule)
	}
}
