package standard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunSkipDone: what a script lists is not done again, and the output goes on where it ended.
func TestRunSkipDone(t *testing.T) {
	model := smallModel(t, smallRun)
	t.Chdir(t.TempDir())
	for name, data := range map[string]string{"feats": smallFeatures, "first": smallFeatures[:strings.Index(smallFeatures, "b")]} {
		if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	object := func(key string) int { return strings.Index(smallFeatures, key+"  [") + 2 }
	script := fmt.Sprintf("a none\nb feats:%d\nc feats:%d\n", object("b"), object("c"))
	if err := os.WriteFile("feats.scp", []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(feats, out string, more ...string) result {
		t.Helper()
		return nnopt(t, append([]string{"run", model, feats, out}, more...)...)
	}
	run("ark:feats", "ark,scp,t:whole,whole.scp").ok(t)
	const goesOn = "--skip-done=out.scp"
	for _, c := range []struct {
		feats, says string
	}{
		{"ark:first", "1 utterances scored"},
		{"scp:feats.scp", "2 utterances scored, 4 frames"}, // the file of a is not opened
		{"ark:feats", "0 utterances scored"},
	} {
		r := run(c.feats, "ark,scp,t:out,out.scp", goesOn).ok(t)
		contains(t, r.stderr, c.says)
	}
	if got, want := readFile(t, "out"), readFile(t, "whole"); got != want || strings.ReplaceAll(readFile(t, "out.scp"), "out:", "whole:") != readFile(t, "whole.scp") {
		t.Errorf("%q, want %q; the script is %q", got, want, readFile(t, "out.scp"))
	}
	r := run("ark:feats", "ark,scp,t:out,./out.scp", goesOn, "--json").ok(t)
	var j runReport
	if err := json.Unmarshal([]byte(r.stdout), &j); err != nil || j.Skipped != 3 || j.Utterances != 0 {
		t.Errorf("%s (%v)", r.stdout, err)
	}
	contains(t, r.stderr, "3 skipped as done before")

	// The script of another table: a line without a whole object does not count.
	if err := os.WriteFile("other.scp", []byte("a whole:2\nb none\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	contains(t, run("ark:feats", "ark,t:rest", "--skip-done=other.scp").ok(t).stderr, "2 utterances scored", "1 skipped")
	if got := readFile(t, "rest"); got != smallOutput[strings.Index(smallOutput, "b"):] {
		t.Errorf("the rest is %q", got)
	}
	// A script alone says where the objects go.
	if err := os.WriteFile("files.scp", []byte("a a.mat\nb b.mat\nc c.mat\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	run("ark:first", "scp,p:files.scp", "--skip-done=files.scp").ok(t)
	contains(t, run("ark:feats", "scp:files.scp", "--skip-done=files.scp").ok(t).stderr, "2 utterances scored", "1 skipped")

	run("ark:feats", "ark:x", "--skip-done=none.scp").fails(t, statusFault, "--skip-done", "none.scp")
	run("ark:feats", "ark:whole", "--skip-done=whole.scp").fails(t, statusUsage, "overwritten")
	run("ark:feats", "ark,scp:x,whole.scp", "--skip-done=whole.scp").fails(t, statusUsage, "whole", "not the script of x")
	run("ark:feats", "ark,scp:feats.scp,none.scp", "--skip-done=none.scp").fails(t, statusUsage, "no archive")
	if readFile(t, "feats.scp") != script {
		t.Error("what is no archive was changed")
	}
}

// TestRunSkipDoneFails: what failed is tried again.
func TestRunSkipDoneFails(t *testing.T) {
	model := smallModel(t, smallRun)
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"run", model, "", "ark,scp:" + out + "," + out + ".scp", "--skip-done=" + out + ".scp"}
	args[2] = "ark:" + file(t, "f", strings.Replace(smallFeatures, "a  [\n  1 2 \n  3 5 ]", "a  [ ]", 1))
	contains(t, nnopt(t, args...).stderr, "2 utterances scored", "1 failed")
	args[2] = "ark:" + file(t, "f", smallFeatures)
	contains(t, nnopt(t, args...).ok(t).stderr, "1 utterances scored", "2 skipped")
	if keys := keysOf(t, "scp:"+out+".scp"); keys != "b c a" {
		t.Errorf("there is %q", keys)
	}
}
