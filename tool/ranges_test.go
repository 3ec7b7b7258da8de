package tool

import (
	"flag"
	"fmt"
	"math"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// TestRanges: every flag of a number refuses what is beyond its range, and says which that is.
func TestRanges(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, v := range standard().verbs() {
		fs, _ := v.flags(standard())
		fs.VisitAll(func(f *flag.Flag) {
			if b, ok := f.Value.(bounded); ok {
				used[f.Name] = true
				for _, n := range []int{b.least, b.most} {
					if err := f.Value.Set(fmt.Sprint(n)); err != nil {
						t.Errorf("%s --%s=%d: %v", v.Name, f.Name, n, err)
					}
				}
				for _, bad := range []string{fmt.Sprint(b.least - 1), fmt.Sprint(b.most + 1), "many", "", "1.5", "99999999999999999999"}[:longtest.Of(2, 6)] {
					nnopt(t, v.Name, "--"+f.Name+"="+bad).fails(t, statusUsage, "--"+f.Name+"="+bad, fmt.Sprintf("between %d and %d", b.least, b.most))
				}
				return
			}
			g, ok := f.Value.(flag.Getter)
			if !ok {
				return
			}
			switch g.Get().(type) {
			case int, int64, uint:
				t.Errorf("%s --%s has no range", v.Name, f.Name)
			case float64:
				for _, bad := range []float64{math.Inf(1), math.NaN(), 0, 1e300} {
					nnopt(t, v.Name, fmt.Sprintf("--%s=%g", f.Name, bad), "model", "ark:feats", "ark:out").fails(t, statusUsage, "--"+f.Name)
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
