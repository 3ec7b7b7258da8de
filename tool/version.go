package tool

import (
	"context"
	"flag"
	"runtime"
	"runtime/debug"
)

func versionVerb() verb {
	return verb{
		name:     "version",
		synopsis: "print the version",
		detail: `
Prints the version of the module, or the commit that it was built from, with the Go release and the platform.`,
		setup: func(*flag.FlagSet) action {
			return func(_ context.Context, c *console, args []string) error {
				if err := wantArgs(args, 0, 0, "no argument"); err != nil {
					return err
				}
				c.print("nnopt %s, %s, %s/%s\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return nil
			}
		},
	}
}

// buildVersion returns the release or the commit of the build, and whether files had
// been changed.
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
	return version
}
