package fgraph

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

type recorder struct {
	events []string
	veto   error
	panics string // event that makes it panic
}

func (r *recorder) OnAttach(*FunctionGraph) error { return nil }

func (r *recorder) note(format string, args ...any) {
	e := fmt.Sprintf(format, args...)
	r.events = append(r.events, e)
	if e == r.panics {
		panic(e)
	}
}

func (r *recorder) OnImport(_ *FunctionGraph, a *Apply, _ Reason) { r.note("import %v", a.op) }

func (r *recorder) OnPrune(_ *FunctionGraph, a *Apply, _ Reason) { r.note("prune %v", a.op) }

func (r *recorder) OnChangeInput(_ *FunctionGraph, a *Apply, i int, old, new *Variable, _ Reason) {
	r.note("change %s: %v to %v", clientString(Client{a, i}), old, new)
}

func (r *recorder) Validate(*FunctionGraph) error { return r.veto }

func TestCase12Veto(t *testing.T) {
	a, b := input("a"), input("b")
	x := call(op("op1"), a)
	y := call(op("op2"), x, b)
	r := &recorder{veto: fmt.Errorf("%w: no", ErrInconsistent)}
	g := newGraph(t, list(a, b), list(x, y), r)
	before := dump(g)
	err := g.ReplaceAllValidate([]Replacement{{x, call(op("op3"), a)}, {b, a}}, nil, why("rule"))
	if !errors.Is(err, ErrInconsistent) || !strings.Contains(err.Error(), "test/rule") {
		t.Error(err)
	}
	if dump(g) != before || g.Commits() != 0 {
		t.Errorf("%s\nbecame\n%s", before, dump(g))
	}
	check(t, g)
	done, undone := r.events[:len(r.events)/2], r.events[len(r.events)/2:]
	if len(done) != len(undone) || done[0] != "import op3" || undone[len(undone)-1] != "prune op3" {
		t.Errorf("events %q", r.events)
	}
	r.veto = nil
	if err := g.ReplaceAllValidate([]Replacement{{b, a}}, list(x), why("rule")); !errors.Is(err, ErrNotRemoved) {
		t.Error(err)
	}
	if dump(g) != before {
		t.Error("what was to be removed is still there, and so is the change")
	}
}

func TestCase13FullHistory(t *testing.T) {
	x := input("x")
	e := call(op("exp"), x)
	g := newGraph(t, list(x), list(call(op("log"), call(op("div"), e, call(op("sum"), e)))))
	h := NewFullHistory()
	if err := g.Attach(h); err != nil {
		t.Fatal(err)
	}
	states := list(g.String())
	for _, s := range []func() Replacement{
		func() Replacement {
			return Replacement{g.outputs[0].owner.inputs[0], call(op("softmax"), x)}
		},
		func() Replacement { return Replacement{g.outputs[0], call(op("log_softmax"), x)} },
	} {
		p := s()
		if err := g.Replace(p.Old, p.New, why("rule")); err != nil {
			t.Fatal(err)
		}
		states = append(states, g.String())
	}
	at := func(err error, k int) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		wantString(t, g, states[k])
	}
	wantString(t, g, "[log_softmax(x)]")
	at(h.Goto(h.Position()-1), 1)
	at(h.Goto(0), 0)
	at(h.Goto(-1), 0)
	at(h.Goto(h.Len()), 2)
	at(h.Goto(h.Position()+1), 2)
	at(h.Goto(1), 1)
	if h.Len() != 2 || h.Position() != 1 || h.Reason(1) != why("rule") {
		t.Error(h.Len(), h.Position())
	}
	// A new replacement here discards the later ones.
	if err := g.Replace(x, call(op("neg"), x), why("new")); err != nil {
		t.Fatal(err)
	}
	if h.Len() != 2 || h.Position() != 2 {
		t.Error(h.Len(), h.Position())
	}
	at(h.Goto(0), 0)
}

func TestPanicOfCallback(t *testing.T) {
	for _, event := range []string{"import op3", "import op4", "prune op1", "change output 0 of the graph: op1(a) to op4(op3(a))"} {
		a := input("a")
		x := call(op("op1"), a)
		finder, r := NewNodeFinder(), &recorder{panics: event}
		g := newGraph(t, list(a), list(x), finder, r)
		before := dump(g)
		fresh := call(op("op4"), call(op("op3"), a))
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic at %q", event)
				}
			}()
			_ = g.Replace(x, fresh, why("test"))
		}()
		if dump(g) != before || finder.Count(op("op1")) != 1 || finder.Count(op("op3")) != 0 {
			t.Errorf("after a panic at %q: %s", event, dump(g))
		}
		check(t, g)
		r.panics = ""
		if err := g.Replace(x, fresh, why("test")); err != nil {
			t.Error(err)
		}
		wantString(t, g, "[op4(op3(a))]")
	}
}

type meddler struct{ err error }

func (m *meddler) OnAttach(*FunctionGraph) error { return nil }

func (m *meddler) OnImport(g *FunctionGraph, a *Apply, _ Reason) {
	m.err = g.Replace(a.inputs[0], constant(1), why("meddle"))
}

func TestCallbacksMustNotChangeTheGraph(t *testing.T) {
	a := input("a")
	x := call(op("op1"), a)
	m := &meddler{}
	g := newGraph(t, list(a), list(x), m)
	if err := g.Replace(x, call(op("op2"), a), why("test")); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(m.err, ErrInvalid) {
		t.Error(m.err)
	}
	wantString(t, g, "[op2(a)]")
}

func TestFeatures(t *testing.T) {
	a := input("a")
	h := NewHistory()
	g := newGraph(t, list(a), list(call(op("f"), a)), h)
	if err := errors.Join(g.Attach(NewHistory()), g.Attach(h), g.Attach(NewDestroyHandler(nil)), g.Attach(NewDestroyHandler(nil))); err != nil {
		t.Fatal(err)
	}
	if n := len(g.Features()); n != 2 {
		t.Errorf("%d features", n)
	}
	if f, ok := FeatureOf[*History](g); !ok || f != h {
		t.Error("not found")
	}
	g.Detach(h)
	if _, ok := FeatureOf[*History](g); ok {
		t.Error("still found")
	}
	bad := &failing{}
	if err := g.Attach(bad); err == nil || len(g.Features()) != 1 {
		t.Error("a feature that can't be attached was")
	}
}

type failing struct{}

func (*failing) OnAttach(*FunctionGraph) error { return errors.New("no") }

func TestProtection(t *testing.T) {
	x, y := input("x"), input("y")
	e := call(add, x, y)
	no := NoOutputFromInplace(0)
	sup := Supervise(y)
	g, _ := destroyGraph(t, list(x, y), list(e, call(add, y, x)))
	if err := errors.Join(g.Attach(no), g.Attach(sup)); err != nil {
		t.Fatal(err)
	}
	if err := g.ReplaceValidate(e, call(aip, x, y), why("in place")); !errors.Is(err, ErrInconsistent) {
		t.Errorf("output 0 in place: %v", err)
	}
	if err := g.ReplaceValidate(g.outputs[1], call(aip, y, x), why("in place")); !errors.Is(err, ErrInconsistent) {
		t.Errorf("protected input: %v", err)
	}
	if err := g.ReplaceValidate(g.outputs[1], call(aip, x, y), why("in place")); err != nil {
		t.Errorf("neither: %v", err)
	}
	// A supervisor that is attached late checks existing destroyers.
	if err := g.Attach(Supervise(x)); err != nil {
		t.Fatal(err)
	}
	if err := g.Validate(); !errors.Is(err, ErrInconsistent) {
		t.Errorf("a protected input that was destroyed before: %v", err)
	}
	if err := g.Attach(NoOutputFromInplace(2)); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

// In Theano, features add methods to the graph, which may collide with callbacks or
// with methods of other features; the class definition rejects that. Here a feature
// adds nothing to the graph: it is found by its type and has its own methods.
func TestCase15FeaturesDoNotCollide(t *testing.T) {
	x := input("x")
	h, other := NewHistory(), &provider{}
	g := newGraph(t, list(x), list(call(op("f"), x)), h, other)
	if got, ok := FeatureOf[*provider](g); !ok || got != other || got.Checkpoint() != "mine" {
		t.Error("a feature with a method Checkpoint is not found")
	}
	if got, ok := FeatureOf[*History](g); !ok || got != h {
		t.Error("a History beside it is not found")
	}
	if err := g.ReplaceValidate(g.Outputs()[0], call(op("g"), x), why("g")); err != nil || other.imported != 1 {
		t.Errorf("%v; it was told of %d applies", err, other.imported)
	}
}

// provider has a callback, and a method that another feature has, too.
type provider struct{ imported int }

func (*provider) OnAttach(*FunctionGraph) error { return nil }
func (*provider) Checkpoint() string            { return "mine" }

func (p *provider) OnImport(*FunctionGraph, *Apply, Reason) { p.imported++ }

// TestOneGraph: a feature serves one graph at a time, and another one after Detach.
func TestOneGraph(t *testing.T) {
	for _, f := range []Feature{NewHistory(), NewFullHistory(), NewNodeFinder(), NewDestroyHandler(nil)} {
		a, b := input("a"), input("b")
		first, second := newGraph(t, list(a), list(call(op("op1"), a)), f), newGraph(t, list(b), list(call(op("op2"), b)))
		if err := second.Attach(f); !errors.Is(err, ErrInvalid) || len(second.Features()) != 0 {
			t.Errorf("%T: %v, and %d features", f, err, len(second.Features()))
		}
		if h, ok := f.(*History); ok {
			cp, before := h.Checkpoint(), dump(first)
			if err := first.Replace(first.Outputs()[0], a, why("test")); err != nil {
				t.Fatal(err)
			}
			if err := h.Revert(cp); err != nil || dump(first) != before {
				t.Errorf("%v\n%s\nis not\n%s", err, dump(first), before)
			}
		}
		first.Detach(f)
		if err := second.Attach(f); err != nil {
			t.Error(err)
		}
	}
}

// TestEmbeddedFeature: a feature that embeds one of this package keeps its callbacks, and has its own.
func TestEmbeddedFeature(t *testing.T) {
	x := input("x")
	f := &countingFinder{NodeFinder: NewNodeFinder()}
	g := newGraph(t, list(x), list(call(op("f"), x)), f)
	if err := g.Replace(g.Outputs()[0], call(op("g"), x), why("test")); err != nil {
		t.Fatal(err)
	}
	if f.imported != 1 || f.Count(op("f")) != 0 || f.Count(op("g")) != 1 {
		t.Errorf("imported %d, f %d times, g %d times", f.imported, f.Count(op("f")), f.Count(op("g")))
	}
	g.Detach(f)
	if f.g != nil {
		t.Error("still attached")
	}
}

type countingFinder struct {
	*NodeFinder
	imported int
}

func (f *countingFinder) OnImport(*FunctionGraph, *Apply, Reason) { f.imported++ }
