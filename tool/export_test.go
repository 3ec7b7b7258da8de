package tool

import "flag"

// Ranges returns the flags of each verb, the bounds of a flag, and the names that have bounds.
func Ranges(cfg *Config) (verbs map[string]*flag.FlagSet, bounds func(*flag.Flag) (least, most int, ok bool), names []string) {
	verbs = make(map[string]*flag.FlagSet)
	for _, v := range cfg.AllVerbs() {
		verbs[v.Name], _ = v.flags(cfg)
	}
	for name := range ranges {
		names = append(names, name)
	}
	for _, d := range cfg.Dialects {
		for name := range d.Ranges {
			names = append(names, name)
		}
	}
	return verbs, func(f *flag.Flag) (int, int, bool) {
		b, ok := f.Value.(bounded)
		return b.least, b.most, ok
	}, names
}
