package rulefind

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// A Completeness says how many of the identities of terms known rules derive.
type Completeness struct {
	Total     int // identities, without those that a check has refuted
	Same      int // of them, those that Options.Same makes equal
	Derived   int // those that Options.Known derive
	Either    int
	Missed    []Missed // the others, those that save most first
	Unchecked int      // of the missed: the check would take longer than the time that there is
}

// A Missed is an identity that is not known, as a rewrite, with what both sides cost.
type Missed struct {
	Rewrite       pattern.Rewrite
	Before, After float64
	Class         rulecheck.Class // "" if it is unchecked
}

// maxMissed bounds the missed identities that are printed, and how many are checked at once: as long as there is time.
const maxMissed = 60

// Measure says which of the identities up to a size what is known derives. If ctx ends, the error is
// that of the context.
func Measure(ctx context.Context, d rulecheck.Domain, o Options) (*Completeness, error) {
	s := &search{began: time.Now(), d: d, o: o.complete(), verdict: make(map[string]*Found), result: new(Result)}
	var err error
	if s.space, err = enumerate(ctx, d, &s.o, nil); err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(s.space.candidates(), func(c *candidate) bool { return c.cond })
	list = list[:min(len(list), s.o.Most)]
	left, err := underived(ctx, d, manyPairs, s.o.Known, list)
	if err != nil {
		return nil, err
	}
	m := &Completeness{Total: len(list), Derived: len(list) - len(left)}
	var missed []*candidate
	for i, c := range list {
		if i%100 == 0 && s.o.Same != nil {
			s.o.Progress(fmt.Sprintf("%d of %d identities", i, len(list)))
		}
		same := s.o.Same != nil && s.o.Same(ctx, c.left.v, c.right.v)
		derived := !slices.Contains(left, c)
		if same {
			m.Same++
		}
		if same || derived {
			m.Either++
		} else {
			missed = append(missed, c)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	slices.SortStableFunc(missed, func(a, b *candidate) int { return cmp.Compare(b.before-b.after, a.before-a.after) })
	var reports []rulecheck.Report
	for part := range slices.Chunk(missed, maxMissed) {
		if len(reports) > 0 && s.late() {
			break
		}
		some, err := rulecheck.ForAll(part, func(c *candidate) (rulecheck.Report, error) {
			return s.check(ctx, &pattern.Rule{Cases: []pattern.Rewrite{c.rewrite}}, 0)
		})
		if err != nil {
			return nil, err
		}
		reports = append(reports, some...)
	}
	m.Unchecked = len(missed) - len(reports)
	for i, c := range missed {
		f := Missed{Rewrite: c.rewrite, Before: c.before, After: c.after}
		if i < len(reports) {
			f.Class = reports[i].Class
		}
		if f.Class == rulecheck.Wrong {
			m.Total--
			continue
		}
		m.Missed = append(m.Missed, f)
	}
	return m, nil
}

// Text prints the shares, and the first of what is missed.
func (m *Completeness) Text() string {
	var b strings.Builder
	share := func(n int, what string) {
		fmt.Fprintf(&b, "%6d  %3.0f %%  %s\n", n, float64(100*n)/float64(max(m.Total, 1)), what)
	}
	share(m.Total, "identities")
	share(m.Same, "that the passes of --known make one variable")
	share(m.Derived, "that saturation with its rules derives")
	share(m.Either, "either")
	if m.Unchecked > 0 {
		fmt.Fprintf(&b, "%d that are missed were not checked, and may be false.\n", m.Unchecked)
	}
	for _, f := range m.Missed[:min(len(m.Missed), maxMissed)] {
		fmt.Fprintf(&b, "%-11s %8.6g to %-8.6g %s\n", f.Class, f.Before, f.After, f.Rewrite)
	}
	return b.String()
}

// A Superfluous is a rule whose instances all follow from other rules.
type Superfluous struct {
	Name      string
	Instances int
	Together  bool // it can go together with those before it that can
}

// Redundant returns the rules of a list that follow from the others, on the expressions that a check
// makes for them. That is evidence, no proof.
func Redundant(ctx context.Context, d rulecheck.Domain, rules []rulecheck.Entry, progress func(string)) ([]Superfluous, error) {
	var text []rulecheck.Entry
	var all []rewrite.NodeRewriter
	for _, e := range rules {
		if s, ok := rewrite.Undescribed(e.Rule).(*pattern.Substitution); ok && !slices.Contains(all, rewrite.NodeRewriter(s)) {
			text, all = append(text, e), append(all, s)
		}
	}
	all = compatible(all)
	text = slices.DeleteFunc(text, func(e rulecheck.Entry) bool { return !slices.Contains(all, rewrite.Undescribed(e.Rule)) })
	instances := make([][][2]*fgraph.Variable, len(text))
	reports, err := rulecheck.ForAll(text, func(e rulecheck.Entry) (rulecheck.Report, error) {
		r := rewrite.Undescribed(e.Rule).(*pattern.Substitution).Rule()
		r.Tags = e.Tags
		return rulecheck.Check(ctx, d, r, rulecheck.Options{Cases: e.Cases})
	})
	if err != nil {
		return nil, err
	}
	without := func(gone []rewrite.NodeRewriter, i int) (bool, error) {
		rest := slices.DeleteFunc(slices.Clone(all), func(r rewrite.NodeRewriter) bool { return r == all[i] || slices.Contains(gone, r) })
		t, err := newTheory(d, onePair, rest)
		if err != nil {
			return false, err
		}
		for _, p := range instances[i] {
			if equal, err := t.ask(ctx, [][2]*fgraph.Variable{p}, nil); err != nil || !equal[0] {
				return false, err
			}
		}
		return true, nil
	}
	var list []Superfluous
	var gone []rewrite.NodeRewriter
	for i := range text {
		if progress != nil && i%10 == 0 {
			progress(fmt.Sprintf("%d of %d rules", i, len(text)))
		}
		instances[i] = reports[i].Instances()
		if len(instances[i]) == 0 {
			continue
		}
		alone, err := without(nil, i)
		if err != nil {
			return nil, err
		}
		if !alone {
			continue
		}
		// One that is superfluous may be so because of another one that is.
		together, err := without(gone, i)
		if err != nil {
			return nil, err
		}
		if together {
			gone = append(gone, all[i])
		}
		list = append(list, Superfluous{rewrite.Describe(text[i].Rule).Name, len(instances[i]), together})
	}
	return list, nil
}
