package saturate

import (
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// A DB holds rules that are text, see package pattern, or groups of them. Instead of replacing, it
// collects what all of them say about a graph, and takes the cheapest form, see [Pass]. Rules that
// are Go functions can't be registered. Its other methods are those of [optdb.DB].
type DB struct{ *optdb.DB }

// NewDB returns an empty database.
func NewDB(name string) *DB { return &DB{optdb.New(name, driver{})} }

// Configure sets the limits, those of settings.
func (d *DB) Configure(settings Pass) *DB {
	d.SetDriver(driver{settings})
	return d
}

// Register adds a rule that is text, or a group of them. To register any other rule, or a group
// with documentation, use Add.
func (d *DB) Register(name string, ruleOrGroup any, tags ...string) error {
	return d.Add(optdb.Entry{Name: name, Rewriter: ruleOrGroup, Tags: tags})
}

// A driver makes a pass with its settings.
type driver struct{ pass Pass }

// Kind says that rules are shared: most are also those of an equilibrium, and who names one there
// does not ask for saturation.
func (driver) Kind() optdb.Kind {
	return optdb.Kind{Name: "SaturationDB", Class: Class, Rules: true, Shared: true, CheckRule: Check}
}

func (d driver) Compile(rules []rewrite.NodeRewriter) (optdb.Driver, error) {
	p := d.pass.With(rules)
	return driver{p}, p.Prepare()
}

func (d driver) Build(s optdb.Selection) rewrite.GraphRewriter {
	p := d.pass
	if len(s.Rules) < len(p.Rules) { // otherwise they are compiled
		p = p.With(s.Rules)
		_ = p.Prepare() // as part of all rules, they are right
	}
	p.Name = s.Name
	return &p
}

func (d driver) Settings() []rewrite.Setting { return d.pass.Settings() }

func (d driver) Configured(name, value string) (rewrite.Configurable, error) {
	c, err := d.pass.Configured(name, value)
	if err != nil {
		return nil, err
	}
	return driver{*c.(*Pass)}, nil
}
