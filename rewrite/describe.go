package rewrite

import (
	"reflect"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// A Describer is a rewriter that describes itself.
type Describer interface {
	Describe() Description
}

// A Description is what a rewriter says about itself. Every field is optional.
type Description struct {
	Name  string // used where the caller does not name the rewriter
	Doc   string // what the rewriter does, in one sentence
	Class string // class of a graph rewriter in a profile
	// Destroys says that the rewriter inserts ops that destroy their inputs. Its driver
	// makes sure that a [fgraph.DestroyHandler] is attached.
	Destroys bool
	// Depth bounds how far from the apply a node rewriter looks: 1 for its inputs, 2 for the
	// inputs of the applies that compute these, and so on. A driver need not show an apply
	// again if something further away changes. 0 means that there is no bound.
	Depth int
	// Cases are the rewrites of a node rewriter that is text, see package pattern.
	Cases []string
	// Place is where such text is, file and line, or "". Errors have it behind the name.
	Place string
	// Reason says why a node rewriter is a Go function although rules can be text.
	Reason string
}

// Describe returns the description of a graph or node rewriter. The name defaults to its Go type
// and the class to [profile.ClassFromFunction].
func Describe(rewriter any) Description {
	var d Description
	if r, ok := rewriter.(Describer); ok {
		d = r.Describe()
	}
	if d.Name == "" {
		d.Name = typeName(reflect.TypeOf(rewriter))
	}
	if d.Class == "" {
		d.Class = profile.ClassFromFunction
	}
	d.Depth = max(d.Depth, 0)
	return d
}

func typeName(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return "nil"
	}
	return t.Name()
}

// As returns r under another description.
func As(r NodeRewriter, d Description) NodeRewriter { return described{r, d} }

type described struct {
	NodeRewriter
	description Description
}

func (d described) Describe() Description { return d.description }
func (d described) Outline() Description  { return d.description }

// Undescribed returns the rewriter that was passed to [As] or that [Later] makes, or else r itself.
func Undescribed(r NodeRewriter) NodeRewriter {
	for {
		switch d := r.(type) {
		case described:
			r = d.NodeRewriter
		case *later:
			r = d.get()
		default:
			return r
		}
	}
}

type transformFunc = func(*Context, *fgraph.Apply) (Result, error)

// transformOf returns the Transform of a node rewriter, in the form that is cheapest to call:
// drivers show very many applies to a rule.
func transformOf(r NodeRewriter) transformFunc {
	r = Undescribed(r)
	if rule, ok := r.(Rule); ok {
		return rule.Fn
	}
	return r.Transform
}

// A Ruled is a rewriter that applies rules of its own, which no database knows: a [Walk] or an
// [Equilibrium].
type Ruled interface {
	// RuleNames returns the names of the rules, as rewrites report them.
	RuleNames() []string
}

// RuleNames returns the names of the rules.
func (w *Walk) RuleNames() []string { return ruleNames(w.Rules) }

// RuleNames returns the names of the rules.
func (q *Equilibrium) RuleNames() []string { return ruleNames(q.Rules) }

func ruleNames(rules []NodeRewriter) []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = Outline(r).Name
	}
	return names
}

// describeRules describes a rewriter that consists of rules.
func describeRules(name, class string, rules []NodeRewriter) Description {
	return summarize(name, class, rules, Describe)
}

// summarize joins the descriptions of rules.
func summarize(name, class string, rules []NodeRewriter, describe func(any) Description) Description {
	all := Description{Name: name, Class: class, Depth: 1}
	var docs []string
	for _, r := range rules {
		d := describe(r)
		if d.Doc != "" {
			docs = append(docs, d.Doc)
		}
		all.Destroys = all.Destroys || d.Destroys
		all.Depth = deeper(all.Depth, d.Depth)
	}
	all.Doc = strings.Join(docs, "; ")
	if len(rules) == 1 {
		d := describe(rules[0])
		all.Cases, all.Reason = d.Cases, d.Reason
	}
	return all
}

// deeper returns the larger depth, where 0 is unlimited.
func deeper(a, b int) int {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}
