package standard_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tool/standard"
)

// failing matches the examples that end with status 1, because they show a fault.
var failing = regexp.MustCompile(`expr --query=debug|reproduce`)

// TestExamples runs the examples of every verb in a folder with the files that they name.
func TestExamples(t *testing.T) {
	t.Chdir(exampleFiles(t))
	word := regexp.MustCompile(`'[^']*'|[^\s']+`)
	for _, v := range (standard.Program{}).Config().AllVerbs() {
		if v.Examples == "" && v.Name != "version" {
			t.Errorf("%s has no examples", v.Name)
		}
		help := nnopt(t, "help", v.Name).ok(t).stdout
		for line := range strings.Lines(strings.TrimSpace(v.Examples)) {
			line = strings.ReplaceAll(strings.TrimSpace(line), "$0", "nnopt")
			command, ok := strings.CutPrefix(line, "nnopt "+v.Name)
			if !ok {
				t.Errorf("%q is no example of %s", line, v.Name)
			}
			contains(t, help, "  nnopt "+v.Name+command)
			if strings.Contains(command, "--listen") {
				continue // it would not end; TestViewListen does that
			}
			if !longtest.Enabled() && (v.Name == "demo" || v.Name == "bench" || v.Name == "tune" || strings.Contains(command, "find")) {
				continue
			}
			args := []string{v.Name}
			for _, glued := range words(word, command) {
				args = append(args, strings.ReplaceAll(glued, "'", ""))
			}
			want := statusOK
			if failing.MatchString(line) {
				want = statusFault
			}
			if r := nnopt(t, args...); r.status != want {
				t.Errorf("%s: status %d, want %d\n%s", line, r.status, want, r.stderr)
			}
		}
	}
}

// words splits a command line at spaces outside of quotes.
func words(word *regexp.Regexp, line string) (words []string) {
	end := -1
	for _, at := range word.FindAllStringIndex(line, -1) {
		if at[0] == end {
			words[len(words)-1] += line[at[0]:at[1]]
		} else {
			words = append(words, line[at[0]:at[1]])
		}
		end = at[1]
	}
	return words
}

// exampleFiles returns a folder with the files of the examples.
func exampleFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const from = "../../nnet3/testdata/compute/"
	for name, source := range map[string]string{"final.mdl": "tdnnf.mdl", "feats.ark": "feats.ark", "feats.scp": "feats.scp", "ivectors.ark": "ivec.txt"} {
		data, err := os.ReadFile(from + source)
		if err != nil {
			t.Fatal(err)
		}
		write(name, string(data))
	}
	if err := writeONNX(t.Context(), filepath.Join(dir, "model.onnx")); err != nil {
		t.Fatal(err)
	}
	if err := writeONNXCase(t.Context(), filepath.Join(dir, "onnxcases", "relu"), 1, 0); err != nil {
		t.Fatal(err)
	}
	write("net.config", smallConfig)
	write("my.rules", "# Two negations cancel.\nneg_neg: canonicalize; fast_run\n    (neg (neg x)) => x\n")
	write("my.graph", nnopt(t, "graph", "--query=none", "--vars=x y: vector", "exp(x*y/y)").ok(t).stdout)
	if err := os.CopyFS(filepath.Join(dir, "cases", "tdnnf_infer"), os.DirFS(recipes+"/tdnnf_infer")); err != nil {
		t.Fatal(err)
	}
	return dir
}
