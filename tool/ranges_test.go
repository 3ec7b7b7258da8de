package tool_test

import (
	"flag"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/standard"
)

// TestRanges: every flag of a number refuses what is beyond its range, and says which that is.
func TestRanges(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	cfg := standard.Program{Database: sync.OnceValues(tool.Always(passes.Default))}.Config() // no call gets to add rules
	refuses := func(verb, given string, wanted ...string) {
		var stderr strings.Builder
		if status := cfg.Run(t.Context(), []string{verb, given, "model", "ark:feats", "ark:out"}, nil, io.Discard, &stderr); status != 2 {
			t.Errorf("%s %s: status %d", verb, given, status)
		}
		for _, w := range wanted {
			if !strings.Contains(stderr.String(), w) {
				t.Errorf("%s %s: %s", verb, given, stderr.String())
			}
		}
	}
	ranges := cfg.Ranges()
	for _, v := range cfg.AllVerbs() {
		name := v.Name
		v.Flags(&cfg).VisitAll(func(f *flag.Flag) {
			if r, ok := ranges[f.Name]; ok {
				least, most := r[0], r[1]
				used[f.Name] = true
				for _, n := range []int{least, most} {
					if err := f.Value.Set(fmt.Sprint(n)); err != nil {
						t.Errorf("%s --%s=%d: %v", name, f.Name, n, err)
					}
				}
				for _, bad := range []string{fmt.Sprint(least - 1), fmt.Sprint(most + 1), "many", "", "1.5", "99999999999999999999"}[:longtest.Of(1, 6)] {
					refuses(name, "--"+f.Name+"="+bad, "--"+f.Name+"="+bad, fmt.Sprintf("between %d and %d", least, most))
				}
				return
			}
			g, ok := f.Value.(flag.Getter)
			if !ok {
				return
			}
			switch g.Get().(type) {
			case int, int64, uint:
				t.Errorf("%s --%s has no range", name, f.Name)
			case float64:
				for _, bad := range []float64{math.NaN(), math.Inf(1), 0, 1e300}[:longtest.Of(1, 4)] {
					refuses(name, fmt.Sprintf("--%s=%g", f.Name, bad), "--"+f.Name)
				}
			}
		})
	}
	for name := range ranges {
		if !used[name] {
			t.Errorf("no verb has --%s", name)
		}
	}
}
