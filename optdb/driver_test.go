package optdb_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/profiletest"
	"github.com/nnopt/nnopt/rewrite"
)

// A RepeatDB is a kind of database that package optdb does not know: it runs its graph rewriters one
// after the other, a number of times.
type RepeatDB struct{ *optdb.DB }

func NewRepeatDB(name string) *RepeatDB { return &RepeatDB{optdb.New(name, repeat{times: 2})} }

func (d *RepeatDB) Register(name string, rewriterOrDB any, tags ...string) error {
	return d.Add(optdb.Entry{Name: name, Rewriter: rewriterOrDB, Tags: tags})
}

// repeat is the driver of a RepeatDB.
type repeat struct{ times int }

func (repeat) Kind() optdb.Kind {
	return optdb.Kind{Name: "RepeatDB", Class: "Repeat", Graphs: true}
}

func (r repeat) Build(s optdb.Selection) rewrite.GraphRewriter {
	return repeater{r.times, &rewrite.Sequence{Name: s.Name, Members: s.Graphs}}
}

func (r repeat) Settings() []rewrite.Setting {
	return []rewrite.Setting{{Name: "times", Value: strconv.Itoa(r.times), Default: "2", Doc: "how often everything runs"}}
}

func (r repeat) Configured(_, value string) (rewrite.Configurable, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 100 {
		return nil, fmt.Errorf("%q is not a number from 1 to 100", value)
	}
	return repeat{n}, nil
}

// A repeater is what a RepeatDB builds.
type repeater struct {
	times int
	*rewrite.Sequence
}

func (r repeater) Describe() rewrite.Description {
	return rewrite.Description{Name: r.Name, Class: "Repeat"}
}

func (r repeater) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	for range r.times {
		if err := r.Sequence.Apply(ctx, g, rec); err != nil {
			return err
		}
	}
	rec.SetClass(r.Name, "Repeat") // the sequence set its own
	return nil
}

// repeating returns a SequenceDB with a RepeatDB, in which a walk turns one b into a c.
func repeating(t testing.TB) *optdb.SequenceDB {
	t.Helper()
	once := &rewrite.Global{Name: "once", Doc: "Turns the last b into a c.", Fn: func(_ context.Context, h *rewrite.Handle) error {
		for n := range h.Graph().Ordered() {
			if n.Op() == letter("b") {
				_, err := h.Replace("", n, fgraph.Replacement{Old: n.Out(), New: fgraph.NewApply(letter("c"), n.Inputs(), thing{}).Out()})
				return err
			}
		}
		return nil
	}}
	db, again := optdb.NewSequenceDB("db"), NewRepeatDB("again")
	must(t, db.Add(optdb.Entry{Name: "again", DB: again, Position: 1, Tags: []string{"fast_run"}}), again.Register("once", once, "fast_run"), again.Register("other", doc(""), "fast_run"))
	return db
}

// TestDriverFromOutside: a kind of database from outside joins queries, settings, pipelines, the profile
// and errors, beside those of the package.
func TestDriverFromOutside(t *testing.T) {
	db := repeating(t)
	for query, want := range map[string]string{
		"+fast_run": "[b(c(c(x)))]", "+fast_run again{times=3}": "[c(c(c(x)))]", "+once": "[b(c(c(x)))]", "+fast_run -once": "[b(b(b(x)))]",
		"[again{times=1}(once)]": "[b(b(c(x)))]", "[again(other, once, once)]": "[c(c(c(x)))]", "none": "[b(b(b(x)))]",
	} {
		o := build(t, db, query)
		again, err := optdb.ParsePipeline(o.Pipeline())
		must(t, err)
		p, err := db.Build(again)
		must(t, err)
		for _, o := range []*optdb.Optimizer{o, p} {
			g, rec := letters(t, "bbb"), profile.New(o.Name(), o.Class())
			must(t, o.Rewrite(t.Context(), g, rec))
			rec.End()
			if g.String() != want {
				t.Errorf("%s, pipeline %s: %s, want %s", query, o.Pipeline(), g, want)
			}
			var report strings.Builder
			must(t, profiletest.Check(rec.Record()), rec.Record().WriteText(&report))
			if o.Selected("again") && !strings.Contains(report.String(), "('again', 'Repeat', 0)") {
				t.Errorf("%s: the profile does not have it:\n%s", query, report.String())
			}
		}
	}
	for query, want := range map[string]string{
		"+fast_run again{times=0}": `optdb: db/again: bad setting: times: "0" is not a number from 1 to 100`,
		"+fast_run again{tims=3}":  "optdb: db/again: bad setting: tims, did you mean times?; it has times",
		"+fast_run -agian":         "optdb: query +fast_run -agian: unknown tag -agian, did you mean again?",
	} {
		q, err := optdb.ParseQuery(query)
		must(t, err)
		if _, err := db.Build(q); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	again, err := optdb.DatabaseOf[*RepeatDB](db, "again")
	must(t, err)
	if err := again.Register("rule", node()); !errors.Is(err, optdb.ErrKind) || !strings.Contains(err.Error(), "can't be in a RepeatDB") {
		t.Error(err)
	}
	if _, err := optdb.DatabaseOf[*optdb.TopoDB](db, "again"); err == nil || !strings.Contains(err.Error(), "it is a RepeatDB") {
		t.Error(err)
	}
	again.SetDriver(repeat{times: 1})
	if l := build(t, db, "+fast_run").Entries()[0]; l.Class != "Repeat" || len(l.Settings) != 1 || l.Settings[0].Value != "1" {
		t.Errorf("%+v", l)
	}
}

// A kind of database from outside is a type with a DB and a driver.
func ExampleDriver() {
	db := optdb.NewSequenceDB("db")
	again := NewRepeatDB("again") // a struct{ *optdb.DB }, made by optdb.New(name, repeat{times: 2})
	first := rewrite.FromFunc("first", "Does nothing.", nil, func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil })
	if err := errors.Join(db.Register("again", again, 1, "fast_run"), again.Register("first", first, "fast_run")); err != nil {
		panic(err)
	}
	optimizer, err := db.Build(optdb.Include("fast_run").Set("again", "times", "3"))
	if err != nil {
		panic(err)
	}
	fmt.Print(optimizer)
	fmt.Println(optimizer.Pipeline())
	// Output:
	// db SeqOptimizer +fast_run again{times=3}
	//     1 again{times=3} Repeat
	//         first FromFunctionOptimizer
	// again{times=3}
}

// TestLongPipelines: a pipeline that lists databases very often is refused before it takes memory, and
// registering rules takes time in proportion to their number.
func TestLongPipelines(t *testing.T) {
	db, many := optdb.NewSequenceDB("db"), optdb.NewEquilibriumDB("many")
	must(t, db.Add(optdb.Entry{Name: "many", DB: many, Position: 1, Tags: []string{"t"}}))
	var rules []optdb.Entry
	for i := range 4_000 {
		rules = append(rules, optdb.Entry{Name: fmt.Sprint("rule", i), Rewriter: node(), Tags: []string{"t", fmt.Sprint("tag", i)}})
	}
	start := time.Now()
	must(t, many.Add(rules[:1_000]...))
	few := time.Since(start)
	start = time.Now()
	must(t, many.Add(rules[1_000:]...))
	if took := time.Since(start); took > 4*10*few+time.Second {
		t.Errorf("3,000 rules take %v, and 1,000 of them took %v", took, few)
	}
	for n, refused := range map[int]bool{1: false, 4: false, 4_500: true} {
		q, err := optdb.ParsePipeline(strings.TrimSuffix(strings.Repeat("many, ", n), ", "))
		must(t, err)
		used := alloctest.Bytes(func() { _, err = db.Build(q) })
		if (err != nil) != refused || refused && (used > 256<<20 || !strings.Contains(err.Error(), "decides about more")) {
			t.Errorf("%d times: %v, with %d bytes", n, err, used)
		}
	}
}
