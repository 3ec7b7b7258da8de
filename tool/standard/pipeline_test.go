package standard_test

import (
	"strings"
	"testing"
)

// TestPipeline: a pipeline that "passes" prints does what the query does, and lists can be typed.
func TestPipeline(t *testing.T) {
	config := file(t, "net.config", smallConfig)
	for _, query := range []string{"+fast_run", "+fast_run -fusion canonicalize{max-use=20}"} {
		line := strings.TrimSuffix(nnopt(t, "passes", "--as-pipeline", "--query", query).ok(t).stdout, "\n")
		commands := func(flag string) string {
			return nnopt(t, "compile", config, flag).ok(t).stdout
		}
		if a, b := commands("--query="+query), commands("--pipeline="+line); a != b || a == "" {
			t.Errorf("%s\nmakes\n%s\n%s\nmakes\n%s", line, b, query, a)
		}
	}
	if got := nnopt(t, "expr", "--vars", "x: vector", "--pipeline", "canonicalize(local_mul_canonizer)", "x*1 + 0").ok(t).stdout; !strings.Contains(got, "[add(x, 0.0)]") {
		t.Errorf("%s", got)
	}
	nnopt(t, "expr", "--vars", "x: vector", "--pipeline", "specialize, canonicalize", "x").fails(t, statusUsage, "must run after canonicalize, because")
	nnopt(t, "expr", "--vars", "x: vector", "--pipeline", "canonicalize] +x [", "x").fails(t, statusUsage, "unexpected ']'")
}
