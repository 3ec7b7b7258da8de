//go:build unix

package standard_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/internal/proctest"
)

// TestRunKilled: runs that are killed at random points and run again leave the archive and the
// script of one that was not.
func TestRunKilled(t *testing.T) {
	longtest.Only(t)
	proctest.NeedsPrograms(t)
	rnd := rand.New(rand.NewPCG(5, 6))
	t.Chdir(t.TempDir())
	config := "input-node name=input dim=40\ncomponent name=a type=AffineComponent input-dim=120 output-dim=600\n" +
		"component-node name=a component=a input=Append(Offset(input, -1), input, Offset(input, 1))\noutput-node name=output input=a\n"
	if err := os.WriteFile("config", []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	nnopt(t, "init", "config", "model").ok(t)
	var features strings.Builder
	for u := range 150 {
		fmt.Fprintf(&features, "utt%d  [\n", u)
		for range 1 + rnd.IntN(60) {
			fmt.Fprintln(&features, strings.Repeat(fmt.Sprint(" ", rnd.IntN(9)), 40))
		}
		features.WriteString("]\n")
	}
	if err := os.WriteFile("feats", []byte(features.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	nnopt(t, "run", "model", "ark:feats", "ark,scp:out,out.scp").ok(t)
	archive, script := readFile(t, "out"), readFile(t, "out.scp")
	rounds := 3
	if !longtest.Enabled() {
		rounds = 1
	}
	for round := range rounds {
		os.Remove("out")
		os.Remove("out.scp")
		kills := 0
		for patience := 10 * time.Millisecond; ; patience += patience / 8 {
			cmd := program("", "run", "--skip-done=out.scp", "model", "ark:feats", []string{"ark,scp", "ark,scp,f"}[rnd.IntN(2)]+":out,out.scp")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(time.Duration(rnd.Int64N(int64(patience))), func() { cmd.Process.Kill() })
			err := cmd.Wait()
			if timer.Stop() && err != nil {
				t.Fatal(err) // it failed by itself
			}
			if err == nil {
				break
			}
			kills++
		}
		if readFile(t, "out") != archive || readFile(t, "out.scp") != script {
			t.Fatalf("round %d, after %d kills: the output differs", round, kills)
		}
		t.Logf("%d kills", kills)
	}
}
