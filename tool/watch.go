package tool

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// A Watch is what the flags for tracing and limiting the optimizer say. A nil Watch says nothing.
type Watch struct {
	trace  string // passes and rules whose rewrites are printed
	WhyNot string // the rule of which it is said why it does not fire
	Most   int    // rewrites; negative for any number
}

// DeclareWatch declares the flags.
func DeclareWatch(fs *flag.FlagSet) *Watch {
	f := new(Watch)
	fs.Var(&bareFlag{Value: &f.trace, Bare: "all"}, "trace", "Print every rewrite, or with --trace=NAMES those of these passes and rules (comma-separated)")
	fs.StringVar(&f.WhyNot, "why-not", "", "Say why this rule does not fire; RULE@TEXT looks only at nodes that contain TEXT")
	fs.IntVar(&f.Most, "max-rewrites", -1, "Stop after this many rewrites, unless negative; a decision about storage counts as one. Bisect over it to find a harmful rewrite")
	return f
}

// Budget returns the most rewrites, negative for any number.
func (f *Watch) Budget() int {
	if f == nil {
		return -1
	}
	return f.Most
}

// A watch is one run with Watch.
type watch struct {
	names    []string        // of --trace
	told     map[string]bool // those of them that made a rewrite
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

// Start returns the context for a run, and a function to call after it, which returns an error for
// a name that no pass and no rule has.
func (f *Watch) Start(ctx context.Context, c *Console, opt *optdb.Optimizer) (context.Context, func() error) {
	if f == nil || f.trace == "" && f.WhyNot == "" && f.Most < 0 {
		return ctx, func() error { return nil }
	}
	w := &watch{told: make(map[string]bool), index: make(map[miss]int)}
	w.rule, w.at, _ = strings.Cut(f.WhyNot, "@")
	w.names = strings.FieldsFunc(f.trace, func(r rune) bool { return r == ',' || r == ' ' })
	all := len(w.names) > 0 && w.names[0] == "all"
	tell := rewrite.TraceTo(fileio.NewPlainWriter(c.Stderr))
	// Names that made a rewrite are noted, so that the others can be reported at the end: such a
	// name is misspelt or not selected, or its rule did not fire.
	opts := rewrite.Options{Trace: func(e rewrite.Event) {
		w.event(e)
		asked := all
		for _, name := range w.names {
			if is(name, e.Pass, e.Rule) {
				asked, w.told[name] = true, true
			}
		}
		if asked {
			tell(e)
		}
	}}
	if w.rule != "" {
		opts.WhyNot = w.miss
	}
	// Drivers need not describe events that nothing asks for, so they are told the names. They know
	// rules by their own names, without the databases around them.
	if !all {
		for _, name := range append(slices.Clone(w.names), w.rule) {
			opts.TraceOnly = append(opts.TraceOnly, name[strings.LastIndexByte(name, '/')+1:])
		}
	}
	if f.Most >= 0 {
		opts.Allow = rewrite.Budget(f.Most)
	}
	return rewrite.WithOptions(ctx, opts), func() error { return w.tell(c, opt) }
}

// is reports whether a name is that of a pass or of a rule in it, or the path of the rule: the
// databases around it and its own name, joined by "/".
func is(name, pass, rule string) bool {
	if name == pass || name == rule {
		return true
	}
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	return last > 0 && parts[last] == rule && slices.Contains(parts[:last], pass)
}

// event records a rewrite for --why-not.
func (w *watch) event(e rewrite.Event) {
	switch {
	case !w.asks(e.Pass, e.Rule):
	case e.Err == nil:
		w.fired++
	default:
		w.note(e.Pass, e.Apply, fmt.Sprintf("refused: %v", e.Err))
	}
}

// asks reports whether --why-not names a rule.
func (w *watch) asks(pass, rule string) bool {
	return w.rule == rule || w.rule != pass && is(w.rule, pass, rule)
}

func (w *watch) miss(m rewrite.Miss) {
	if w.asks(m.Pass, m.Rule) {
		w.note(m.Pass, m.Apply, m.Text)
	}
}

func (w *watch) note(pass string, n *fgraph.Apply, why string) {
	at := ""
	if n != nil {
		at = n.String()
	}
	// The same reason at applies with the same text is one line with a count. A network has
	// hundreds of them.
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

// maxMisses is the number of reasons that --why-not prints.
const maxMisses = 100

// tell prints the reasons of --why-not, and the names of --trace without a rewrite.
func (w *watch) tell(c *Console, opt *optdb.Optimizer) error {
	for _, name := range w.names {
		if name == "all" || w.told[name] {
			continue
		}
		if err := known("--trace", name, opt); err != nil {
			return err
		}
		if opt.Selected(name) || !opt.Has(name) {
			c.Say("trace: no rewrite by %s", name)
		} else {
			c.Say("trace: no rewrite by %s", opt.Explain(name))
		}
	}
	if w.rule == "" {
		return nil
	}
	// A rule that said nothing may not exist or may not be selected. That is a better answer than
	// none.
	if w.fired == 0 && len(w.misses) == 0 {
		if err := known("--why-not", w.rule, opt); err != nil {
			return err
		}
		if !opt.Selected(w.rule) && opt.Has(w.rule) {
			c.Say("why not: %s", opt.Explain(w.rule))
			return nil
		}
	}
	w.tellMisses(c)
	return nil
}

// known returns an error for a name that no pass and no rule has. The rules of a pass that is a Go
// function are known by what they did.
func known(flag, name string, opt *optdb.Optimizer) error {
	names := opt.AllNames()
	if opt.Has(name) || slices.Contains(names, name) {
		return nil
	}
	return Usagef("%s: there is no pass or rule %q%s", flag, fileio.Excerpt(name, 0), spell.Hint(name[strings.LastIndexByte(name, '/')+1:], names))
}

// tellMisses prints the reasons of --why-not.
func (w *watch) tellMisses(c *Console) {
	for i, m := range w.misses {
		if i == maxMisses {
			c.Say("why not: %s: %d more reasons; %s@TEXT prints those of some nodes", w.rule, len(w.misses)-i, w.rule)
			break
		}
		times := ""
		if m.times > 1 {
			times = fmt.Sprintf(" (%d times)", m.times)
		}
		c.Say("why not: %s/%s: at %s: %s%s", m.pass, w.rule[strings.LastIndexByte(w.rule, '/')+1:], m.at, m.why, times)
	}
	switch {
	case w.fired > 0:
		c.Say("%s fired %d times", w.rule, w.fired)
	case len(w.misses) == 0:
		c.Say("why not: %s: no reason: there is no node with an op that it tracks, or it gives no reasons", w.rule)
	}
}
