package fgraph

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// A Feature is told about the changes of a graph. Attach finds out which of the callbacks
// [Importer], [Pruner], [InputChanger], [Committer], [Validator], [Orderer] and [Detacher] it
// implements; the others cost nothing. Callbacks run in the order of attachment and must not
// change the graph.
type Feature interface {
	// OnAttach is called before any other callback. The feature looks at the existing
	// applies itself, see [Bookkeep]. If it returns ErrAlreadyAttached, Attach silently
	// drops the feature. A feature that keeps a record of one graph should refuse a second
	// one.
	OnAttach(*FunctionGraph) error
}

// Importer is told about every apply that joined the graph, inputs before clients.
type Importer interface {
	OnImport(g *FunctionGraph, a *Apply, why Reason)
}

// Pruner is told about every apply that is about to leave the graph, clients before inputs. The
// apply still has its number and its inputs.
type Pruner interface {
	OnPrune(g *FunctionGraph, a *Apply, why Reason)
}

// InputChanger is told that input i of a changed from old to new; if a is nil, output i of the
// graph did. An added output has a nil old, a removed one a nil new.
type InputChanger interface {
	OnChangeInput(g *FunctionGraph, a *Apply, i int, old, new *Variable, why Reason)
}

// Committer is told about every change that was not undone at once. pairs are the requested
// replacements, or nil for a change of another kind.
type Committer interface {
	OnCommit(g *FunctionGraph, pairs []Replacement, why Reason)
}

// Validator may object to the state of the graph with an error that wraps [ErrInconsistent].
type Validator interface {
	Validate(g *FunctionGraph) error
}

// Orderer adds orderings to those that follow from the inputs of the applies.
type Orderer interface {
	// Orderings yields pairs of applies, the first of which must come before the second.
	Orderings(g *FunctionGraph, yield func(before, after *Apply))
}

// Detacher is told that the feature was detached.
type Detacher interface {
	OnDetach(*FunctionGraph)
}

// callbacks lists the features by callback.
type callbacks struct {
	importers  []Importer
	pruners    []Pruner
	changers   []InputChanger
	committers []Committer
	validators []Validator
	orderers   []Orderer
}

func (c *callbacks) add(f Feature) {
	listen(&c.importers, f)
	listen(&c.pruners, f)
	listen(&c.changers, f)
	listen(&c.committers, f)
	listen(&c.validators, f)
	listen(&c.orderers, f)
}

func listen[F any](list *[]F, f Feature) {
	if c, ok := f.(F); ok {
		*list = append(*list, c)
	}
}

// hidden is embedded in features of this package whose callbacks are not part of their API. The
// embedded Feature has the callbacks; it is the same object, under an unexported type.
type hidden struct{ Feature }

func (h hidden) revealed() Feature { return h.Feature }

// parts returns f and the hidden feature in it, if there is one.
func parts(f Feature) []Feature {
	if h, ok := f.(interface{ revealed() Feature }); ok {
		return []Feature{f, h.revealed()}
	}
	return []Feature{f}
}

// Attach adds a feature. It does nothing if the feature is already attached.
func (g *FunctionGraph) Attach(f Feature) error {
	if f == nil || !reflect.ValueOf(f).Comparable() {
		return fmt.Errorf("%w: feature of type %T cannot be compared; use a pointer", ErrInvalid, f)
	}
	if slices.Contains(g.features, f) {
		return nil
	}
	if err := f.OnAttach(g); err != nil {
		if errors.Is(err, ErrAlreadyAttached) {
			return nil
		}
		return fmt.Errorf("attach %T: %w", f, err)
	}
	// Only after OnAttach has succeeded, so a feature hears of no change before it has looked at
	// the graph.
	g.features = append(g.features, f)
	g.listCallbacks()
	return nil
}

// attachable returns an error unless a feature of type F can be attached to g: it must be the
// only one of its type there, and serve no other graph than mine.
func attachable[F Feature](mine, g *FunctionGraph) error {
	if _, ok := FeatureOf[F](g); ok {
		return ErrAlreadyAttached
	}
	if mine != nil && mine != g {
		return fmt.Errorf("%w: it serves one graph, and is still attached to another", ErrInvalid)
	}
	return nil
}

// Detach removes a feature. It does nothing if the feature is not attached.
func (g *FunctionGraph) Detach(f Feature) {
	if f == nil || !reflect.ValueOf(f).Comparable() {
		return
	}
	i := slices.Index(g.features, f)
	if i < 0 {
		return
	}
	g.features = slices.Delete(g.features, i, i+1)
	g.listCallbacks()
	for _, p := range parts(f) {
		if d, ok := p.(Detacher); ok {
			d.OnDetach(g)
		}
	}
}

// Features returns the attached features in the order of attachment.
func (g *FunctionGraph) Features() []Feature { return slices.Clone(g.features) }

// FeatureOf returns the first feature of type F that is attached to g.
func FeatureOf[F any](g *FunctionGraph) (F, bool) {
	for _, f := range g.features {
		if ff, ok := f.(F); ok {
			return ff, true
		}
	}
	var none F
	return none, false
}

// Bookkeep calls f.OnImport for every apply of g, inputs before clients. A feature that keeps a
// record of the applies calls it from OnAttach.
func Bookkeep(g *FunctionGraph, f Importer) {
	why := Reason{Rule: "attach"}
	for a := range g.Ordered() {
		f.OnImport(g, a, why)
	}
}

func (g *FunctionGraph) listCallbacks() {
	g.on = callbacks{}
	_, g.handled = FeatureOf[*DestroyHandler](g)
	for _, f := range g.features {
		for _, p := range parts(f) {
			g.on.add(p)
		}
	}
}

// Times is the time that a graph spent in its features while timing was on.
type Times struct {
	Validate time.Duration // in Validate
	Callback time.Duration // in all other callbacks
}

// SetTiming starts or stops measuring the time spent in features. It is off by default, because
// reading the clock costs more than most callbacks.
func (g *FunctionGraph) SetTiming(on bool) { g.timing = on }

// Timing reports whether the time spent in features is being measured.
func (g *FunctionGraph) Timing() bool { return g.timing }

// Times returns the time spent in features.
func (g *FunctionGraph) Times() Times { return g.times }

// fire calls do for every feature on a list. If a callback panics, the others are still called,
// so that undoing the change can call the opposite callback of each.
func fire[F any](g *FunctionGraph, list []F, do func(F)) {
	if g.timing || g.undoing {
		fireCarefully(g, list, do)
		return
	}
	i := 0
	// The common case must not pay for a recover at each callback. If one panics, this deferred
	// loop calls the features that have not heard of the change yet: undoing it will call the
	// opposite callback of every feature, which must not hear of the undoing alone.
	defer func() {
		for i++; i < len(list); i++ {
			recovered(func() { do(list[i]) })
		}
	}()
	for ; i < len(list); i++ {
		do(list[i])
	}
}

// fireCarefully is fire with timing. It keeps a panic until a change has been undone completely.
func fireCarefully[F any](g *FunctionGraph, list []F, do func(F)) {
	start := time.Since(g.born)
	var first any
	for _, f := range list {
		if p := recovered(func() { do(f) }); p != nil && first == nil {
			first = p
		}
	}
	g.times.Callback += time.Since(g.born) - start
	switch {
	case first == nil:
	case !g.undoing:
		panic(first)
	case g.panicked == nil:
		g.panicked = first
	}
}

// recovered returns the value that do panics with, or nil.
func recovered(do func()) (p any) {
	defer func() { p = recover() }()
	do()
	return nil
}

func (g *FunctionGraph) fireImport(a *Apply, why Reason) {
	if len(g.on.importers) > 0 {
		fire(g, g.on.importers, func(f Importer) { f.OnImport(g, a, why) })
	}
}

func (g *FunctionGraph) firePrune(a *Apply, why Reason) {
	if len(g.on.pruners) > 0 {
		fire(g, g.on.pruners, func(f Pruner) { f.OnPrune(g, a, why) })
	}
}

func (g *FunctionGraph) fireChange(c Client, old, new *Variable, why Reason) {
	if len(g.on.changers) > 0 {
		fire(g, g.on.changers, func(f InputChanger) { f.OnChangeInput(g, c.Apply, c.Index, old, new, why) })
	}
}

func (g *FunctionGraph) fireCommit(pairs []Replacement, why Reason) {
	g.commits++
	g.sorted = nil
	if len(g.on.committers) > 0 {
		fire(g, g.on.committers, func(f Committer) { f.OnCommit(g, pairs, why) })
	}
}

// Validate asks every [Validator] in the order of attachment and returns the first objection.
func (g *FunctionGraph) Validate() error {
	if g.timing && len(g.on.validators) > 0 {
		start := time.Since(g.born)
		defer func() { g.times.Validate += time.Since(g.born) - start }()
	}
	for _, f := range g.on.validators {
		if err := f.Validate(g); err != nil {
			return err
		}
	}
	return nil
}
