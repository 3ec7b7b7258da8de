package optdb

import (
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/internal/errlist"
	"github.com/nnopt/nnopt/pattern"
)

// AddRules adds rules that are text, see [pattern.ParseRules], to the databases of db that are
// named by their groups, such as canonicalize, under their names and with their tags. A rule with
// the tag fast_run is selected by the query +fast_run. If any rule is at fault, nothing is added,
// and the error names all that are, with file and line if they were read from a file.
func AddRules(db *SequenceDB, v pattern.Vocabulary, rules []pattern.Rule, options ...pattern.Option) error {
	a := adder{db: db, groups: make(map[string]ruleGroup)}
	for _, r := range rules {
		a.add(v, r, options)
	}
	if len(a.faults) == 0 {
		return nil
	}
	// All or nothing: whoever mends the file and adds it again must not find half of its names taken.
	for _, in := range a.added {
		in.group.remove(in.name)
	}
	return errlist.Join(a.faults)
}

// An adder adds rules one by one.
type adder struct {
	db       *SequenceDB
	groups   map[string]ruleGroup
	added    []addedRule
	faults   []error
	reserved bool
}

// A ruleGroup is a database that rules may join.
type ruleGroup interface {
	Database
	Has(name string) bool
	Add(...Entry) error
	remove(name string)
}

type addedRule struct {
	group ruleGroup
	name  string
}

func (a *adder) add(v pattern.Vocabulary, r pattern.Rule, options []pattern.Option) {
	fault := func(err error) { a.faults = append(a.faults, r.Locate(err)) }
	s, err := pattern.New(v, r, options...)
	switch {
	// The mistake is one of the vocabulary. Once is enough.
	case errors.Is(err, pattern.ErrReserved) && a.reserved:
	case err != nil && r.File == "":
		fault(err)
	case err != nil:
		a.faults = append(a.faults, err)
	}
	a.reserved = a.reserved || errors.Is(err, pattern.ErrReserved)
	if len(r.Groups) == 0 {
		fault(errors.New("it is in no group"))
	}
	for _, name := range r.Groups {
		in, known := a.groups[name]
		if !known {
			var no error
			if in, no = DatabaseOf[ruleGroup](a.db, name); no != nil {
				fault(no)
				continue
			}
			a.groups[name] = in
		}
		switch {
		// Asked even of a rule that is at fault itself, so that one run names all that has to be mended.
		case in.Has(r.Name):
			fault(fmt.Errorf("%s has a rule of that name: %w", name, ErrDuplicate))
		case s != nil:
			if err := in.Add(Entry{Name: r.Name, Rewriter: s, Tags: r.Tags}); err != nil {
				fault(err)
				continue
			}
			a.added = append(a.added, addedRule{in, r.Name})
		}
	}
}
