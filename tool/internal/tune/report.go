package tune

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nnopt/nnopt/internal/lists"
)

// Write writes the query with what was measured in comments: a file that optdb.ParseQueryFile reads. head
// are lines for its beginning, such as the model and the machine.
func (r *Result) Write(w io.Writer, head ...string) error {
	var b strings.Builder
	for _, line := range append(head, r.summary()...) {
		b.WriteString(strings.TrimRight("# "+line, " ") + "\n")
	}
	// The terms that the user gave come first, and then those that were found, each with its figures.
	kept := r.of(Kept)
	if r.Refused {
		kept = nil
	}
	fmt.Fprintf(&b, "\n%s\n", r.Base)
	for _, f := range kept {
		fmt.Fprintf(&b, "%-32s # %s of the time%s\n", f.Term, f.Ratio, differing(f.Differs))
	}
	for _, g := range []struct {
		title    string
		outcomes []Outcome
	}{
		{"Kept, but not together: time with the choice, as a part of that without", []Outcome{Kept}},
		{"Decided: time with the choice, as a part of that without", []Outcome{Dropped}},
		{"Undecided", []Outcome{Undecided}},
		{"Not tried, because the time was over", []Outcome{Untried}},
		{"Changes outputs", []Outcome{Different}},
		{"Can't be optimized or run", []Outcome{Failed}},
	} {
		if g.outcomes[0] == Kept && !r.Refused {
			continue
		}
		if list := r.of(g.outcomes...); len(list) > 0 {
			fmt.Fprintf(&b, "\n# %s:\n", g.title)
			for _, f := range list {
				b.WriteString("#   " + strings.TrimRight(fmt.Sprintf("%-28s %s", f.Term, f.figures()), " ") + "\n")
			}
		}
	}
	r.counts(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// summary says what the tuned query is worth.
func (r *Result) summary() []string {
	lines := []string{fmt.Sprintf("base: %s, %s a run", r.Base, round(r.Run))}
	switch {
	case r.Refused:
		lines = append(lines, fmt.Sprintf("tuned: nothing; what was kept takes %s of the time of the base together", r.Whole))
	case r.Whole.Blocks > 0:
		bits := "the outputs have the same bits"
		switch {
		case r.Blind:
			bits = "outputs could not be compared"
		case r.Differs != 0:
			bits = fmt.Sprintf("outputs differ by %.1e of their norm", r.Differs)
		}
		lines = append(lines, fmt.Sprintf("tuned: %s of the time of the base; %s", r.Whole, bits))
	default:
		lines = append(lines, "tuned: nothing pays")
	}
	if r.Blind {
		lines = append(lines, "WARNING: outputs are the same for other inputs, so they say nothing about what a choice changes")
	}
	return append(lines, fmt.Sprintf("a ratio is a median with its interval of 95 %%; a choice has to save %.0f %%; measured for %s", 100*Worth, round(r.Took)))
}

// counts adds what was not measured.
func (r *Result) counts(b *strings.Builder) {
	asks := make(map[string][]string)
	for _, f := range r.of(Forbidden) {
		tags := strings.Join(f.Asks, ",")
		asks[tags] = append(asks[tags], f.Term)
	}
	if len(asks) > 0 {
		fmt.Fprintf(b, "\n# Not tried without --allow:\n")
	}
	for _, tags := range slices.Sorted(maps.Keys(asks)) {
		terms := asks[tags]
		if n := len(terms); n > shown {
			terms = append(terms[:shown:shown], fmt.Sprintf("%d more", n-shown))
		}
		list(b, tags+": ", terms)
	}
	same := lists.Map(r.of(Same), func(f *Finding) string { return f.Term })
	if len(same) > 0 {
		fmt.Fprintf(b, "\n# The same computation:\n")
		list(b, "", same)
	}
	if n := len(r.of(Idle)); n > 0 {
		fmt.Fprintf(b, "\n# %d others are of entries that make no rewrite here.\n", n)
	}
}

// shown is how many terms are listed that would need the same tags.
const shown = 12

// list writes words with commas, in lines of comment.
func list(b *strings.Builder, before string, words []string) {
	const width = 90
	line := "#   " + before
	for i, word := range words {
		if i < len(words)-1 {
			word += ","
		}
		if i > 0 && len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#  "
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}

// of returns the findings with those outcomes.
func (r *Result) of(outcomes ...Outcome) (list []*Finding) {
	for _, f := range r.Findings {
		if slices.Contains(outcomes, f.Outcome) {
			list = append(list, f)
		}
	}
	return list
}

// figures returns what was measured of a choice.
func (f *Finding) figures() string {
	switch {
	case f.Err != nil:
		return strings.ReplaceAll(f.Err.Error(), "\n", " ")
	case f.Outcome == Different:
		return strings.TrimPrefix(differing(f.Differs), ", ")
	case f.Ratio.Blocks > 0:
		text := f.Ratio.String() + differing(f.Differs)
		if f.As != "" {
			text += ", as " + f.As
		}
		return text
	}
	return ""
}

// String says what became of the choice, in a line.
func (f *Finding) String() string {
	return strings.TrimRight(fmt.Sprintf("%-32s %-10s %s", f.Term, f.Outcome, f.figures()), " ")
}

func differing(d float64) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf(", outputs differ by %.1e", d)
}

// String returns the median with its interval.
func (r Ratio) String() string {
	return fmt.Sprintf("%.3f (%.3f to %.3f)", r.Median, r.Low, r.High)
}

// round returns a duration with three digits.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}
