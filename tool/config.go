package tool

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/optdb"
)

// A Config says what a program is made of.
type Config struct {
	// Name is the name of the program, in help and errors.
	Name string
	// Doc says what the program does, in a sentence for the list of verbs.
	Doc string
	// Database makes the database of passes that queries select from, anew at each call. The
	// default is an empty one. Its error is that of every verb that needs the database; [Always] is for
	// one that can't fail.
	Database func() (*optdb.SequenceDB, error)
	// Group is the entry of the database that rules join which name none, such as those of --rule.
	// The default is canonicalize.
	Group string
	// Dialects are the worlds whose graphs the verbs work on.
	Dialects []*Dialect
	// Verbs join those of this package and of the dialects, after them in the list of verbs. A verb
	// that has the name of another takes its place. One without Setup only has texts for the help of
	// that other.
	Verbs []Verb
}

// complete returns the configuration with its defaults.
func (cfg Config) complete() Config {
	cfg.Name = cmp.Or(cfg.Name, "nnopt")
	cfg.Doc = cmp.Or(cfg.Doc, cfg.Name+" optimizes graphs by a database of passes.")
	cfg.Group = cmp.Or(cfg.Group, "canonicalize")
	if cfg.Database == nil {
		cfg.Database = Always(func() *optdb.SequenceDB { return optdb.NewSequenceDB("empty") })
	}
	database := cfg.Database
	cfg.Database = func() (*optdb.SequenceDB, error) {
		db, err := database()
		if db == nil && err == nil {
			err = errors.New("the program has no database: Config.Database returns nil, and no error")
		}
		return db, err
	}
	return cfg
}

// Always returns a [Config.Database] that can't fail, such as Always(passes.Default).
func Always(database func() *optdb.SequenceDB) func() (*optdb.SequenceDB, error) {
	return func() (*optdb.SequenceDB, error) { return database(), nil }
}

// AllVerbs lists the verbs in the order of help.
func (cfg Config) AllVerbs() []Verb {
	all := []Verb{
		profileVerb(),
		PassesVerb(),
		graphVerb(),
		optVerb(),
		ruleVerb(),
		viewVerb(),
		tuneVerb(),
		reproduceVerb(),
		reduceVerb(),
		bisectVerb(),
		versionVerb(),
	}
	// A verb that comes later takes the place of one of its name in the list as well, so that help
	// shows it where users look for it.
	named := func(name string) int { return slices.IndexFunc(all, func(a Verb) bool { return a.Name == name }) }
	add := func(v Verb) {
		i, at := named(v.Name), named(v.Before)
		switch {
		case i >= 0 && v.Setup == nil:
			all[i] = all[i].saying(v)
		case i >= 0:
			all[i] = v
		case at >= 0:
			all = slices.Insert(all, at, v)
		default:
			all = append(all, v)
		}
	}
	given := slices.Clone(cfg.Verbs)
	for i := len(cfg.Dialects) - 1; i >= 0; i-- {
		given = append(slices.Clone(cfg.Dialects[i].Verbs), given...)
	}
	// Verbs that share a name join what has it at last, whatever the order of the dialects.
	for _, v := range given {
		if v.Claims == nil {
			add(v)
		}
	}
	for _, v := range given {
		if i := named(v.Name); v.Claims != nil && i >= 0 {
			all[i] = join(all[i], v)
		} else if v.Claims != nil {
			add(v)
		}
	}
	return all
}

// verb returns the verb of a name.
func (cfg *Config) verb(name string) (Verb, error) {
	all := cfg.AllVerbs()
	names := make([]string, len(all))
	for i, v := range all {
		if v.Name == name {
			return v, nil
		}
		names[i] = v.Name
	}
	return Verb{}, Usagef("unknown verb %q%s", fileio.Excerpt(name, 0), meant(spell.Nearest(name, names)))
}

// arguments says what arguments a verb takes, as its help has them: "MODEL, EXPR or PROFILE".
func (cfg *Config) arguments(verb string) string {
	v, err := cfg.verb(verb)
	if err != nil {
		return "an argument"
	}
	list := strings.ReplaceAll(v.Args, "|", ", ")
	if i := strings.LastIndex(list, ", "); i >= 0 {
		return list[:i] + " or " + list[i+2:]
	}
	return list
}
