package kerneltest

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// sets are the values of NNOPT_KERNELS that stand for kernels of this module. What the processor can't execute is replaced by what it can. The
// products of the set "blas", which are gonum's, have other bits.
var sets = []string{"avx512", "avx2", "neon", "go"}

// EachSet runs the named tests of this program with every set of kernels: in processes of their own, because the set is chosen when a
// program starts.
func EachSet(t *testing.T, tests ...string) {
	if os.Getenv("NNOPT_KERNELS") != "" {
		t.Skip("the set of kernels is given")
	}
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			Again(t, "NNOPT_KERNELS="+set, tests...)
		})
	}
}

// Again runs the named tests of this program in a process of its own, with a setting in the environment.
func Again(t *testing.T, setting string, tests ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^("+strings.Join(tests, "|")+")$", "-test.short", "-test.v")
	cmd.Env = append(os.Environ(), setting)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("the system does not start programs for the processor that it emulates")
	}
	if passed := regexp.MustCompile(`(?m)^--- (PASS|SKIP): `).FindAll(out, -1); err != nil || len(passed) != len(tests) {
		t.Errorf("%v\n%s", err, out)
	}
}
