package kerneltest

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// sets are the values of NNOPT_KERNELS for kernels of this module, by processor. A set that the
// processor can't execute is replaced by one that it can. The set "blas" is left out: its products
// are gonum's, with other bits.
var sets = map[string][]string{
	"amd64": {"avx512", "avxvnni", "avx2", "go"},
	"arm64": {"neondot", "neon", "go"},
}

// EachSet runs the named tests of this program with every set of kernels or, without the flag -long,
// with plain Go, which all sets are compared with. Each set runs in its own process, because a
// program chooses the set when it starts.
func EachSet(t *testing.T, tests ...string) {
	if os.Getenv("NNOPT_KERNELS") != "" {
		t.Skip("NNOPT_KERNELS is set")
	}
	list := sets[runtime.GOARCH]
	if len(list) == 0 {
		t.Skip("there is only one set of kernels")
	}
	for _, set := range list[len(list)-longtest.Of(1, len(list)):] {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			Again(t, "NNOPT_KERNELS="+set, tests...)
		})
	}
}

// Again runs the named tests of this program in a new process, with a setting in the environment.
func Again(t *testing.T, setting string, tests ...string) {
	t.Helper()
	args := []string{"-test.run=^(" + strings.Join(tests, "|") + ")$", "-test.v"}
	if longtest.Enabled() {
		args = append(args, "-long")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), setting)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("the system can't start programs for the processor that it emulates")
	}
	if passed := regexp.MustCompile(`(?m)^--- (PASS|SKIP): `).FindAll(out, -1); err != nil || len(passed) != len(tests) {
		t.Errorf("%v\n%s", err, out)
	}
}
