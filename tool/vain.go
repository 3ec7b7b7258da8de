package tool

import (
	"flag"
	"slices"
	"strings"
)

// flags returns the flags on the command line, by name.
func (c *Console) flags() (list []*flag.Flag) {
	if c.set != nil {
		c.set.Visit(func(f *flag.Flag) { list = append(list, f) })
	}
	return list
}

// InVain returns an error if one of the flags is on the command line, where it would change
// nothing. why ends the sentence "--name has no meaning". A name with a dot at its end stands for
// all flags that begin so.
func (c *Console) InVain(why string, names ...string) error {
	for _, f := range c.flags() {
		for _, name := range names {
			// Flags are visited in the order of their names, so of several the error names the same
			// one each time.
			if f.Name == name || strings.HasSuffix(name, ".") && strings.HasPrefix(f.Name, name) {
				return Usagef("--%s has no meaning %s", f.Name, why)
			}
		}
	}
	return nil
}

// InVainIf is InVain if a condition holds.
func (c *Console) InVainIf(condition bool, why string, names ...string) error {
	if !condition {
		return nil
	}
	return c.InVain(why, names...)
}

// only is InVain for all flags but those of these names.
func (c *Console) only(why string, names ...string) error {
	for _, f := range c.flags() {
		if !slices.Contains(names, f.Name) {
			return Usagef("--%s has no meaning %s", f.Name, why)
		}
	}
	return nil
}

// Apart returns an error if two of the flags are on the command line, each of which says what the
// verb is to do.
func (c *Console) Apart(names ...string) error {
	first := ""
	for _, f := range c.flags() {
		switch {
		case !slices.Contains(names, f.Name):
		case first != "":
			return Usagef("--%s and --%s exclude each other", first, f.Name)
		default:
			first = f.Name
		}
	}
	return nil
}
