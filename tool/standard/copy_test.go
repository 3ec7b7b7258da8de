package standard_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCopyModel: binary stays as it is, text comes back as it was, and --raw takes the network out.
func TestCopyModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"tdnnf.mdl", "lstmp.raw", "blstm.raw"} {
		nnopt(t, "copy", compute+name, at(name)).ok(t)
		if readFile(t, at(name)) != readFile(t, compute+name) {
			t.Errorf("a copy of %s differs", name)
		}
		text, again := at(name+".txt"), at(name+".again")
		nnopt(t, "copy", "--binary=false", compute+name, text).ok(t)
		nnopt(t, "copy", text, at(name+".bin")).ok(t)
		nnopt(t, "copy", "--binary=false", at(name+".bin"), again).ok(t)
		if readFile(t, again) != readFile(t, text) {
			t.Errorf("%s in text does not come back from binary", name)
		}
	}
	raw := nnopt(t, "copy", "--raw", compute+"tdnnf.mdl", "-").ok(t).stdout
	contains(t, raw, "\x00B<Nnet3> ", "</Nnet3> ")
	if nnopt(t, "info", file(t, "raw", raw)).ok(t).stdout != nnopt(t, "info", compute+"tdnnf.mdl").ok(t).stdout {
		t.Error("--raw gives another network")
	}
	if nnoptWith(t, raw, "copy", "-", "-").ok(t).stdout != raw {
		t.Error("a raw network does not stay what it is")
	}
}

// TestCopyTable converts between archives and scripts, text and binary, plain and compressed.
func TestCopyTable(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	features := "ark:" + file(t, "feats", smallFeatures)
	nnopt(t, "copy", features, "ark,scp:"+at("bin")+","+at("scp")).ok(t)
	if got := nnopt(t, "copy", "scp:"+at("scp"), "ark,t:-").ok(t); got.stdout != smallFeatures {
		t.Errorf("%q, want %q", got.stdout, smallFeatures)
	} else {
		contains(t, got.stderr, "3 objects copied")
	}
	if got := nnopt(t, "copy", "--compress", "--compression-method=6", features, "ark:"+at("cm")).ok(t); got.stdout != "" {
		t.Errorf("%q on standard output", got.stdout)
	}
	contains(t, readFile(t, at("cm")), "CM3 ")
	if got := nnopt(t, "copy", "ark:"+at("cm"), "ark,t:-").ok(t).stdout; got != smallFeatures {
		t.Errorf("%q, want %q", got, smallFeatures)
	}
	const vectors = "a  [ 1 2 3 ]\nb  [ 4 ]\n"
	if got := nnopt(t, "copy", "--vectors", "ark:"+file(t, "v", vectors), "ark,t:-").ok(t).stdout; got != vectors {
		t.Errorf("%q, want %q", got, vectors)
	}
	script := at("v.scp")
	nnopt(t, "copy", "--vectors", "ark:"+file(t, "v", vectors), "ark,scp:"+at("v.ark")+","+script).ok(t)
	if got := nnopt(t, "copy", "--vectors", "scp:"+script, "ark,t:-").ok(t).stdout; got != vectors {
		t.Errorf("%q, want %q", got, vectors)
	}
	if r := nnopt(t, "copy", "scp:"+script, "ark:"+at("m.ark")); r.status != statusFault {
		t.Errorf("status %d", r.status)
	} else {
		contains(t, r.stderr, "a vector (FV) where a matrix is wanted", "--vectors copies vectors")
	}
}

func TestCopyFaults(t *testing.T) {
	features := file(t, "feats", smallFeatures)
	in, out := "ark:"+features, filepath.Join(t.TempDir(), "out")
	packed := file(t, "packed", "\x1f\x8b\b\x00rest")
	for _, c := range []struct {
		name   string
		args   []string
		status int
		wanted []string
	}{
		{"one argument", []string{in}, statusUsage, []string{"IN OUT"}},
		{"no output", []string{compute + "lstmp.raw", ""}, statusUsage, []string{"empty", `"-" is standard input or output`}},
		{"no input", []string{"", out}, statusUsage, []string{"empty"}},
		{"onto itself", []string{in, in}, statusUsage, []string{"overwritten"}},
		{"a model onto itself", []string{compute + "lstmp.raw", compute + "lstmp.raw"}, statusUsage, []string{"overwritten"}},
		{"onto a file of the script", []string{"scp:" + file(t, "s", "a "+features+":2\n"), in}, statusUsage, []string{features + " is an input and would be overwritten"}},
		{"an archive as its script", []string{in, "ark,scp:" + out + "," + out}, statusUsage, []string{"one file"}},
		{"a script that is not there", []string{in, "scp:" + out + ".scp"}, statusFault, []string{"ark,scp:", "no such file"}},
		{"a command in a script", []string{"scp:" + file(t, "s", "a cat "+features+" |\n"), "ark:/dev/null"}, statusFault, []string{"--allow-pipes"}},
		{"a file to a table", []string{features, "ark:" + out}, statusUsage, []string{"ark:" + features}},
		{"an option that there is not", []string{"ark,bold:" + features, "ark:" + out}, statusUsage, []string{`unknown option "bold"`}},
		{"a table to a file", []string{in, out}, statusUsage, []string{"ark:" + out}},
		{"a packed archive", []string{"ark:" + packed, "ark:-"}, statusFault, []string{"gunzip"}},
		{"a packed script", []string{"scp:" + packed, "ark:" + out}, statusFault, []string{"gunzip"}},
		{"a packed model", []string{packed, out}, statusFault, []string{"gunzip"}},
		{"no such table", []string{"ark:none", "ark:" + out}, statusFault, []string{"none"}},
		{"no such model", []string{"none", out}, statusFault, []string{"none"}},
		{"not a model", []string{features, out}, statusFault, []string{"not a model"}},
		{"half a model", []string{file(t, "m", readFile(t, compute+"lstmp.raw")[:3000]), out}, statusFault, []string{"ends too early"}},
		{"a command", []string{"cat x |", out}, statusFault, []string{"--allow-pipes"}},
		{"a method that there is not", []string{"--compress", "--compression-method=8", in, "ark:" + out}, statusUsage, []string{"between 1 and 7"}},
		{"matrices as vectors", []string{"--vectors", "ark:" + compute + "feats.ark", "ark:-"}, statusFault, []string{"key utt_a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			nnopt(t, append([]string{"copy"}, c.args...)...).fails(t, c.status, c.wanted...)
			if _, err := os.Stat(out); err == nil {
				t.Error("there is output")
				os.Remove(out)
			}
		})
	}
	if readFile(t, features) != smallFeatures {
		t.Error("the input has changed")
	}
	r := nnopt(t, "copy", "scp:"+file(t, "s", "a "+features+":2\nb none\nc "+features+":2\n"), "ark,t:"+out)
	if r.status != statusFault {
		t.Errorf("status %d", r.status)
	}
	contains(t, r.stderr, "key b", "2 objects copied", "1 could not be read")
	if keys := keysOf(t, "ark:"+out); keys != "a c" {
		t.Errorf("the copy has %q", keys)
	}
}
