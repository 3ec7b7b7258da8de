package tool

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor/expr"
)

// A Config says what a program is made of. In the zero value, it is the program nnopt.
type Config struct {
	// Name is the name of the program, in help and errors.
	Name string
	// Doc says what the program does, in a sentence for the list of verbs.
	Doc string
	// Database makes the database of passes that queries select from, anew at each call.
	// The default is passes.Default.
	Database func() *optdb.SequenceDB
	// Language has the ops and functions that expressions, rules and graphs may name. The
	// default is that of the ops of package tensor.
	Language *expr.Language
	// Components makes the components of networks that are read. The default has Kaldi's
	// types, see component.Kaldi.
	Components *component.Registry
	// Sections read the features that graph files hold in sections of these names, in
	// addition to those of this module; see graphfile.WithSections.
	Sections map[string]graphfile.SectionReader
	// Verbs join those of this package, after them in the list of verbs. A verb that has
	// the name of another takes its place.
	Verbs []Verb
}

// complete returns the configuration with its defaults.
func (cfg Config) complete() Config {
	cfg.Name = cmp.Or(cfg.Name, "nnopt")
	cfg.Doc = cmp.Or(cfg.Doc, cfg.Name+" optimizes computation graphs by a database of passes, and runs Kaldi nnet3 networks on them.")
	if cfg.Database == nil {
		cfg.Database = passes.Default
	}
	if cfg.Language == nil {
		cfg.Language = expr.Default()
	}
	return cfg
}

// vocabulary returns the meaning of the names in rules for tensors.
func (cfg *Config) vocabulary() pattern.Vocabulary { return tensorpass.VocabularyOf(cfg.Language) }

// networkVocabulary returns the meaning of the names in rules for networks.
func (cfg *Config) networkVocabulary() pattern.Vocabulary {
	types := cfg.Components
	if types == nil {
		types = component.Kaldi()
	}
	return nnet3pass.VocabularyOf(types)
}

// verbs lists the verbs in the order of help.
func (cfg *Config) verbs() []Verb {
	all := []Verb{
		demoVerb(),
		runVerb(),
		compileVerb(),
		profileVerb(),
		passesVerb(),
		exprVerb(),
		graphVerb(),
		optVerb(),
		ruleVerb(),
		viewVerb(),
		reproduceVerb(),
		reduceVerb(),
		bisectVerb(),
		initVerb(),
		infoVerb(),
		copyVerb(),
		verifyVerb(),
		benchVerb(),
		versionVerb(),
	}
	// A verb of the configuration takes the place of one of ours in the list as well, so that help
	// shows it where users look for it.
	for _, v := range cfg.Verbs {
		if i := slices.IndexFunc(all, func(a Verb) bool { return a.Name == v.Name }); i >= 0 {
			all[i] = v
		} else {
			all = append(all, v)
		}
	}
	return all
}

// verb returns the verb of a name.
func (cfg *Config) verb(name string) (Verb, error) {
	all := cfg.verbs()
	names := make([]string, len(all))
	for i, v := range all {
		if v.Name == name {
			return v, nil
		}
		names[i] = v.Name
	}
	return Verb{}, Usagef("unknown verb %q%s", fileio.Excerpt(name, 0), meant(spell.Nearest(name, names)))
}
