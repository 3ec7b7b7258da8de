package repro

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// ErrCase means that a case can't be run, regardless of the optimizer.
var ErrCase = errors.New("not a case")

// A Case is a graph and the optimizer that fails on it.
type Case struct {
	World World
	// Build builds the optimizer of a query, as the method of a database does.
	Build func(optdb.Query) (*optdb.Optimizer, error)
	// Graph is the graph before optimization. Nothing changes it.
	Graph *fgraph.FunctionGraph
	Query optdb.Query
	// Checked makes the run check the graph after every pass, as a query for debugging does.
	Checked bool
	// Budget, unless nil, is the most rewrites that the run may make, see [rewrite.Budget].
	Budget *int
	// Values are the values of the inputs. If there are none, they are random and depend on Seed.
	Values []any
	Seed   uint64
	// Failure is how the case fails. Without a Kind, every failure counts.
	Failure Failure
	// Notes are further fields for the file, for people and programs that use it.
	Notes []graphfile.Field
}

// A Kind is a way to fail.
type Kind string

// The kinds of failures.
const (
	None        Kind = ""
	Error       Kind = "error"       // a rewriter returned an error
	Panic       Kind = "panic"       // a rewriter panicked
	Proposal    Kind = "proposal"    // a rule proposed what can't be
	NoEnd       Kind = "no-end"      // rules do not terminate
	Damage      Kind = "damage"      // the graph is damaged after a pass
	Overwrite   Kind = "overwrite"   // the optimized graph overwrites what it may not, or what is read later
	Declaration Kind = "declaration" // an op does not do what it declares
	Run         Kind = "run"         // the optimized graph can't be run
	Values      Kind = "values"      // the optimized graph has other values
)

var kinds = []Kind{Error, Panic, Proposal, NoEnd, Damage, Overwrite, Declaration, Run, Values}

// early reports whether the failure happens while the optimizer runs.
func (k Kind) early() bool { return k != None && slices.Index(kinds, k) <= slices.Index(kinds, Damage) }

// evaluated reports whether only a run of the optimized graph shows the failure.
func (k Kind) evaluated() bool { return slices.Index(kinds, k) > slices.Index(kinds, Overwrite) }

// A Failure is a way to fail and the place of the fault.
type Failure struct {
	Kind Kind
	Pass string
	Rule string // empty if the pass has no rules
	// Node is the apply that the rule was shown, or that it replaced.
	Node string
	// Err says what happened.
	Err error
	// Accepted says why outputs that differ are no failure, see [Judge].
	Accepted string
}

// Same reports whether two failures are of the same kind, pass and rule.
func (f Failure) Same(o Failure) bool {
	return f.Kind == o.Kind && f.Pass == o.Pass && f.Rule == o.Rule
}

// String returns the kind, the pass and the rule: "panic in canonicalize/local_abs".
func (f Failure) String() string {
	if f.Kind == None {
		return "no failure"
	}
	if f.Pass == "" {
		return string(f.Kind)
	}
	return fmt.Sprintf("%s in %v", f.Kind, fgraph.Reason{Pass: f.Pass, Rule: f.Rule})
}

// classify returns the failure that an error of an optimizer, or of running what it made, is.
func classify(err error) Failure {
	f := Failure{Kind: Run, Err: err}
	var at *rewrite.Error
	if !errors.As(err, &at) {
		switch {
		case err == nil:
			f.Kind = None
		case errors.Is(err, fgraph.ErrDeclaration):
			f.Kind = Declaration
		case errors.Is(err, fgraph.ErrInconsistent):
			f.Kind = Overwrite
		}
		return f
	}
	f.Kind, f.Pass, f.Rule, f.Node = Error, at.Pass, at.Rule, at.Node
	is := func(list ...error) bool {
		return slices.ContainsFunc(list, func(e error) bool { return errors.Is(at.Err, e) })
	}
	var endless *rewrite.MaxUseError
	switch {
	case is(rewrite.ErrPanic):
		f.Kind = Panic
	case errors.As(at.Err, &endless):
		f.Kind, f.Rule = NoEnd, firstOfLap(endless)
	case is(rewrite.ErrRule, fgraph.ErrType, fgraph.ErrCycle, fgraph.ErrMissingInput, fgraph.ErrForeign, fgraph.ErrInvalid):
		f.Kind = Proposal
	case is(fgraph.ErrNoHandler):
		f.Kind = Overwrite
	case is(fgraph.ErrCheck, fgraph.ErrInconsistent):
		f.Kind = Damage
	}
	return f
}

// firstOfLap returns one rule of those that undo each other, the same whichever of them reaches
// its limit first.
func firstOfLap(e *rewrite.MaxUseError) string {
	rule := e.Rule
	if e.Repeats {
		for _, ev := range e.Lap {
			if strings.Compare(ev.Rule, rule) < 0 {
				rule = ev.Rule
			}
		}
	}
	return rule
}
