package pipeline_test

import (
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/component"
)

// TestNew makes cases of all families twice: the request of each compiles, and the second case
// equals the first. All component types occur.
func TestNew(t *testing.T) {
	seen := map[string]bool{}
	backward, number := 0, longtest.Of(8, 30)*len(Families())
	for seed := range number {
		a, err := New(uint64(seed))
		if err != nil {
			t.Error(err)
			continue
		}
		b, err := New(uint64(seed))
		if err != nil || a.Config != b.Config || !a.Request.Equal(b.Request) {
			t.Errorf("seed %d gives different cases", seed)
		}
		if _, err := compile.Compile(a.Net, a.Request, compile.Options{}); err != nil {
			t.Errorf("seed %d (%s): %v\n%s", seed, a.Family, err, a.Config)
		}
		for _, c := range a.Net.Components {
			seen[c.Type()] = true
		}
		if a.Request.NeedDerivatives() {
			backward++
		}
	}
	for _, typ := range component.Kaldi().Types() {
		if !seen[typ] && longtest.Enabled() {
			t.Errorf("no network has a %s", typ)
		}
	}
	if backward < number/3 || backward > number*4/5 {
		t.Errorf("%d of %d requests want derivatives", backward, number)
	}
}
