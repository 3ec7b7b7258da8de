package tool

import (
	"context"
	"errors"
	"flag"
	"strings"
)

// join returns two verbs of one name as one. The arguments that the second one claims are for it.
func join(first, second Verb) Verb {
	v := first
	v.Args = together(first.Args, second.Args, "|")
	v.Synopsis = together(first.Synopsis, second.Synopsis, "; ")
	v.Detail = together(strings.TrimSpace(first.Detail), strings.TrimSpace(second.Detail), "\n\n")
	v.Examples = together(strings.TrimSpace(first.Examples), strings.TrimSpace(second.Examples), "\n")
	v.Setup = func(cfg *Config, fs *flag.FlagSet) Action {
		// Each declares its flags as if it were alone. What both have is set in both.
		j := &joined{args: first.Args, second: second}
		j.flags[0], j.act[0] = first.flags(cfg)
		j.flags[1], j.act[1] = second.flags(cfg)
		j.of = [2]string{first.Of, second.Of}
		j.declare(fs)
		return j.run
	}
	return v
}

// together puts two texts in one, unless they are the same.
func together(a, b, between string) string {
	if a == b || b == "" {
		return a
	}
	if a == "" {
		return b
	}
	return a + between + b
}

// A joined is a verb that two dialects have.
type joined struct {
	args   string // of the first verb
	second Verb
	flags  [2]*flag.FlagSet
	act    [2]Action
	of     [2]string
}

// declare declares the flags of both verbs.
func (j *joined) declare(fs *flag.FlagSet) {
	for _, own := range j.flags {
		own.VisitAll(func(f *flag.Flag) {
			if g := fs.Lookup(f.Name); g != nil {
				g.Usage = together(g.Usage, f.Usage, "; ")
				return
			}
			fs.Var(&sharedFlag{f.Name, j.flags[:]}, f.Name, f.Usage)
			fs.Lookup(f.Name).DefValue = f.DefValue
		})
	}
}

// run runs each of the verbs on its arguments, the first one also if there are none. Who can't be served may have
// meant the other one.
func (j *joined) run(ctx context.Context, c *Console, args []string) error {
	var parts [2][]string
	for _, arg := range args {
		if j.second.Claims(arg) {
			parts[1] = append(parts[1], arg)
		} else {
			parts[0] = append(parts[0], arg)
		}
	}
	if parts[1] == nil {
		err := j.part(ctx, c, 0, parts[0])
		if fault := (*usageError)(nil); errors.As(err, &fault) && len(args) < 2 && j.second.Args != j.args {
			return Usagef("%w; for %s: %s", err, j.second.Of, j.second.Args)
		}
		return err
	}
	var failed error
	if parts[0] != nil {
		// A fault that was reported does not keep the other arguments from being looked at.
		if failed = j.part(ctx, c, 0, parts[0]); failed != nil && !errors.Is(failed, ErrSilent) {
			return failed
		}
	}
	if err := j.part(ctx, c, 1, parts[1]); err != nil {
		return err
	}
	return failed
}

// part runs one of the verbs. Flags of the other one alone are errors.
func (j *joined) part(ctx context.Context, c *Console, k int, args []string) error {
	for _, f := range c.flags() {
		if j.flags[k].Lookup(f.Name) == nil {
			return Usagef("--%s has no meaning for %s", f.Name, j.of[k])
		}
	}
	return j.act[k](ctx, c, args)
}

// A sharedFlag sets a flag in all verbs that have it.
type sharedFlag struct {
	name string
	sets []*flag.FlagSet
}

func (s *sharedFlag) String() string {
	if f := s.first(); f != nil {
		return f.Value.String()
	}
	return ""
}

// IsBoolFlag reports whether the flag needs no value.
func (s *sharedFlag) IsBoolFlag() bool { return isBoolean(s.first()) }

// Set sets the flag.
func (s *sharedFlag) Set(text string) error {
	for _, fs := range s.sets {
		if fs.Lookup(s.name) == nil {
			continue
		}
		if err := fs.Set(s.name, text); err != nil {
			return err
		}
	}
	return nil
}

// first returns the flag of the first verb that has it.
func (s *sharedFlag) first() *flag.Flag {
	for _, fs := range s.sets {
		if f := fs.Lookup(s.name); f != nil {
			return f
		}
	}
	return nil
}
