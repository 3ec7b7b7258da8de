package optdb

import (
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/pattern"
)

// AddRules adds rules that are text, see [pattern.ParseRules], to the databases of db that are
// named by their groups, such as canonicalize, under their names and with their tags. A rule with
// the tag fast_run is selected by the query +fast_run. If any rule is at fault, nothing is added,
// and the error names all that are.
func AddRules(db *SequenceDB, v pattern.Vocabulary, rules []pattern.Rule, options ...pattern.Option) error {
	type group interface {
		Database
		Has(name string) bool
		Add(...Entry) error
	}
	groups, entries := make(map[string]group), make(map[string][]Entry)
	var order []string
	var faults []error
	for _, r := range rules {
		s, err := pattern.New(v, r, options...)
		if err == nil && len(r.Groups) == 0 {
			err = errors.New("it is in no group")
		}
		for _, name := range r.Groups {
			in, known := groups[name]
			if !known {
				var no error
				if in, no = DatabaseOf[group](db, name); no != nil {
					err = errors.Join(err, no)
					continue
				}
				groups[name], order = in, append(order, name)
			}
			if in.Has(r.Name) {
				err = errors.Join(err, fmt.Errorf("%s has a rule of that name", name))
			}
			if s != nil {
				entries[name] = append(entries[name], Entry{Name: r.Name, Rewriter: s, Tags: r.Tags})
			}
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("rule %s: %w", r.Name, err))
		}
	}
	for _, name := range order {
		faults = append(faults, NewGroupDB(name).Add(entries[name]...))
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	for _, name := range order {
		if err := groups[name].Add(entries[name]...); err != nil {
			return err
		}
	}
	return nil
}
