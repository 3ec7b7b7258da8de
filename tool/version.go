package tool

import (
	"context"
	"flag"
	"runtime"
	"runtime/debug"
)

func versionVerb() Verb {
	return Verb{
		Name:     "version",
		Synopsis: "print the version",
		Detail: `
Prints the version of the program, or the commit that it was built from, with the Go release and the platform.`,
		Setup: func(cfg *Config, _ *flag.FlagSet) Action {
			return func(_ context.Context, c *Console, args []string) error {
				if err := WantArgs(args, 0, 0, "no argument"); err != nil {
					return err
				}
				c.Print("%s %s, %s, %s/%s\n", cfg.Name, buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return nil
			}
		},
	}
}

// module is the path of the module that this package belongs to.
const module = "github.com/nnopt/nnopt"

// buildVersion returns the release or the commit of the build, and whether files had
// been changed. If the program is of another module, the version of this one follows.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	version, modified := info.Main.Version, false
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && (version == "" || version == "(devel)"):
			version = s.Value
		case s.Key == "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if modified {
		version += ", with changes"
	}
	for _, m := range info.Deps {
		if m.Path == module {
			version += ", nnopt " + m.Version
		}
	}
	return version
}
