package fgraph

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// A Feature is told what happens in a graph. Which of the callbacks [Importer],
// [Pruner], [InputChanger], [Committer], [Validator], [Orderer] and [Detacher]
// it wants is found out once, in Attach; the others cost nothing. Callbacks run
// in the order of attachment and must not change the graph.
type Feature interface {
	// OnAttach is called before the first callback. The applies that the
	// graph already has are the feature's to look at, see [Bookkeep].
	// ErrAlreadyAttached makes Attach drop the feature quietly. A feature that
	// keeps what it knows of one graph should refuse a second one.
	OnAttach(*FunctionGraph) error
}

// Importer is told of every apply that joined the graph, inputs before clients.
type Importer interface {
	OnImport(g *FunctionGraph, a *Apply, why Reason)
}

// Pruner is told of every apply that is about to leave the graph, clients
// before inputs. Its number and its inputs are still those it had.
type Pruner interface {
	OnPrune(g *FunctionGraph, a *Apply, why Reason)
}

// InputChanger is told that input i of a, or output i of the graph where a is
// nil, was old and is new from now on. Where an output is added old is nil, where
// one is removed new is.
type InputChanger interface {
	OnChangeInput(g *FunctionGraph, a *Apply, i int, old, new *Variable, why Reason)
}

// Committer is told that a change was made and not undone at once. pairs are the
// replacements that were asked for, nil if the change was of another kind.
type Committer interface {
	OnCommit(g *FunctionGraph, pairs []Replacement, why Reason)
}

// Validator may object to the state of the graph. The error wraps
// [ErrInconsistent].
type Validator interface {
	Validate(g *FunctionGraph) error
}

// Orderer adds orderings to those that the inputs of the applies impose.
type Orderer interface {
	// Orderings yields pairs of which the first has to come before the second.
	Orderings(g *FunctionGraph, yield func(before, after *Apply))
}

// Detacher is told that the feature was detached.
type Detacher interface {
	OnDetach(*FunctionGraph)
}

// callbacks lists who wants what. at is the place of the feature among
// FunctionGraph.features, for its account of time.
type callbacks struct {
	importers  []callback[Importer]
	pruners    []callback[Pruner]
	changers   []callback[InputChanger]
	committers []callback[Committer]
	validators []callback[Validator]
	orderers   []callback[Orderer]
}

type callback[F any] struct {
	do F
	at int
}

// Attach adds a feature. Attaching the same one again does nothing.
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
	g.features = append(g.features, f)
	g.featureTime = append(g.featureTime, 0)
	g.listCallbacks()
	return nil
}

// servesOne complains if a feature that knows one graph, which is mine, is to be
// attached to another: what it notes of the one would be taken for the other's.
func servesOne(mine, g *FunctionGraph) error {
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
	g.featureTime = slices.Delete(g.featureTime, i, i+1)
	g.listCallbacks()
	if d, ok := f.(Detacher); ok {
		d.OnDetach(g)
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

// Bookkeep calls f.OnImport for every apply that g has, inputs before clients. A
// feature that keeps a record of the applies calls it when it is attached.
func Bookkeep(g *FunctionGraph, f Importer) {
	why := Reason{Rule: "attach"}
	for a := range g.Ordered() {
		f.OnImport(g, a, why)
	}
}

func (g *FunctionGraph) listCallbacks() {
	g.on = callbacks{}
	_, g.handled = FeatureOf[*DestroyHandler](g)
	for i, f := range g.features {
		if c, ok := f.(Importer); ok {
			g.on.importers = append(g.on.importers, callback[Importer]{c, i})
		}
		if c, ok := f.(Pruner); ok {
			g.on.pruners = append(g.on.pruners, callback[Pruner]{c, i})
		}
		if c, ok := f.(InputChanger); ok {
			g.on.changers = append(g.on.changers, callback[InputChanger]{c, i})
		}
		if c, ok := f.(Committer); ok {
			g.on.committers = append(g.on.committers, callback[Committer]{c, i})
		}
		if c, ok := f.(Validator); ok {
			g.on.validators = append(g.on.validators, callback[Validator]{c, i})
		}
		if c, ok := f.(Orderer); ok {
			g.on.orderers = append(g.on.orderers, callback[Orderer]{c, i})
		}
	}
}

// Times is what a graph spent on its features since they were attached, as far
// as it was timed.
type Times struct {
	Validate time.Duration // in Validate
	Callback time.Duration // in all other callbacks
}

// SetTiming starts or stops the measurement of the time that features take. It
// is off at first, because looking at the clock costs more than most callbacks.
func (g *FunctionGraph) SetTiming(on bool) { g.timing = on }

// Timing reports whether the time that features take is being measured.
func (g *FunctionGraph) Timing() bool { return g.timing }

// Times returns the time in features.
func (g *FunctionGraph) Times() Times { return g.times }

// FeatureTime returns the time that the callbacks of f took, validation
// included.
func (g *FunctionGraph) FeatureTime(f Feature) time.Duration {
	if i := slices.Index(g.features, f); i >= 0 {
		return g.featureTime[i]
	}
	return 0
}

// clock adds what passed since start to the account of a feature, and returns
// the time.
func (g *FunctionGraph) clock(at int, start time.Duration) time.Duration {
	now := time.Since(g.born)
	g.featureTime[at] += now - start
	return now
}

// fire calls do for everybody on a list. If a callback panics the others are
// told all the same, so that all can be told the opposite when the change is
// undone.
func fire[F any](g *FunctionGraph, list []callback[F], do func(F)) {
	if g.timing || g.undoing {
		fireCarefully(g, list, do)
		return
	}
	i := 0
	defer func() {
		for i++; i < len(list); i++ {
			guard(func() { do(list[i].do) })
		}
	}()
	for ; i < len(list); i++ {
		do(list[i].do)
	}
}

// fireCarefully is fire with a look at the clock. While a change is undone, a
// panic is kept until that is done.
func fireCarefully[F any](g *FunctionGraph, list []callback[F], do func(F)) {
	start := time.Since(g.born)
	now := start
	var first any
	for _, f := range list {
		if p := guard(func() { do(f.do) }); p != nil && first == nil {
			first = p
		}
		now = g.clock(f.at, now)
	}
	g.times.Callback += now - start
	switch {
	case first == nil:
	case !g.undoing:
		panic(first)
	case g.panicked == nil:
		g.panicked = first
	}
}

// guard returns the value that do panics with, or nil.
func guard(do func()) (p any) {
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

// Validate asks every feature that validates, in the order of attachment, and
// returns the first objection.
func (g *FunctionGraph) Validate() error {
	if len(g.on.validators) == 0 {
		return nil
	}
	if !g.timing {
		for _, f := range g.on.validators {
			if err := f.do.Validate(g); err != nil {
				return err
			}
		}
		return nil
	}
	start := time.Since(g.born)
	now := start
	for _, f := range g.on.validators {
		err := f.do.Validate(g)
		now = g.clock(f.at, now)
		if err != nil {
			g.times.Validate += now - start
			return err
		}
	}
	g.times.Validate += now - start
	return nil
}
