package rewrite

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// newPanic describes a panic that a deferred function has just recovered.
func newPanic(value any) *PanicError {
	if p, ok := value.(*PanicError); ok {
		return p
	}
	return &PanicError{Value: value, At: panicSite(), Stack: debug.Stack()}
}

// panicSite returns folder, file and line of the panic that is being recovered. A fault may show deep in
// a package that a rule uses, such as fgraph, to which it handed nil. What its author looks for is the
// line of the rule: the innermost one of the package whose function the driver called.
func panicSite() string {
	frames := panicFrames()
	at := -1
	for i, f := range frames {
		if own(f) {
			at = i
		}
	}
	if at < 0 && len(frames) == 0 {
		return ""
	}
	at = slices.IndexFunc(frames, func(f runtime.Frame) bool { return at < 0 || packageOf(f) == packageOf(frames[at]) })
	f := frames[at]
	return fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(f.File)), path.Base(f.File), f.Line)
}

// panicFrames returns the functions between the driver and the panic, innermost first, without those
// of the standard library.
func panicFrames() []runtime.Frame {
	const most = 1000 // calls; deeper ones are recursion
	pcs := make([]uintptr, most)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	var list []runtime.Frame
	panicking, root := false, ""
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicking, root = true, strings.TrimSuffix(f.File, "runtime/panic.go")
		case !panicking || strings.HasPrefix(f.Function, "runtime."):
		case root != "" && strings.HasPrefix(f.File, root): // the standard library
		case slices.Contains([]string{"(*engine).attempt", "protect", "makeRule"}, strings.TrimPrefix(f.Function, core+"rewrite.")):
			return list
		default:
			list = append(list, f)
		}
	}
	return list
}

// core is the path of the module, with which the paths of its packages begin.
var core = strings.TrimSuffix(reflect.TypeFor[PanicError]().PkgPath(), "rewrite")

// own reports whether a function is not of the packages that run rules.
func own(f runtime.Frame) bool {
	p := packageOf(f)
	for _, name := range []string{"fgraph", "rewrite", "pattern", "passes/saturate/internal/egraph", "optdb"} {
		if p == core+name {
			return false
		}
	}
	return true
}

// packageOf returns the path of the package of a function.
func packageOf(f runtime.Frame) string {
	dir, name := path.Split(f.Function)
	name, _, _ = strings.Cut(name, ".")
	return dir + name
}
