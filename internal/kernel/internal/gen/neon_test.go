package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// written is a word of the code for arm64, and the instruction that is said to be it.
var written = regexp.MustCompile(`WORD \$0x([0-9a-f]{8}) // (.*)`)

// What comments say about words is what the disassembler says.
func TestWords(t *testing.T) {
	longtest.Only(t)
	var source strings.Builder
	source.WriteString("TEXT ·words(SB), 4, $0-0\n")
	said := map[string]string{}
	for name, text := range generate() {
		for _, m := range written.FindAllStringSubmatch(string(text), -1) {
			if old, ok := said[m[1]]; !ok {
				said[m[1]] = m[2]
				fmt.Fprintf(&source, "\tWORD $0x%s\n", m[1])
			} else if old != m[2] {
				t.Errorf("%s: %s is %s and %s", name, m[1], old, m[2])
			}
		}
	}
	if len(said) < 500 {
		t.Fatalf("there are only %d words", len(said))
	}
	dir := t.TempDir()
	file, object := filepath.Join(dir, "words.s"), filepath.Join(dir, "words.o")
	if err := os.WriteFile(file, []byte(source.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	goTool(t, "asm", "-o", object, file)
	listed := regexp.MustCompile(`(?m)\t([0-9a-f]{8})\t.*// (.*?)\s*$`).FindAllStringSubmatch(goTool(t, "objdump", "-gnu", object), -1)
	for _, m := range listed {
		want, ok := said[m[1]]
		if ok && m[2] != want {
			t.Errorf("%s is %s, and said to be %s", m[1], m[2], want)
		}
		delete(said, m[1])
	}
	for word, text := range said {
		if !strings.HasPrefix(text, "sdot ") { // too new for it
			t.Errorf("the disassembler does not know %s, %s", word, text)
		}
	}
}

// goTool runs a tool of Go for arm64, and returns its output.
func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool"}, args...)...)
	cmd.Env = append(os.Environ(), "GOARCH=arm64")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go tool %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// count is what an inner loop has: instructions in all, multiply-adds of vectors, and vectors or
// numbers that are loaded.
type count struct{ all, mulAdds, loads int }

// loop counts the instructions of a function from a label to the next branch back to it.
func loop(text, function, label string) (c count) {
	_, text, _ = strings.Cut(text, "TEXT "+function)
	_, text, _ = strings.Cut(text, "\n"+label+":\n")
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "\t") {
			c.all++
		}
		switch {
		case strings.Contains(line, "// fmla "), strings.Contains(line, "// sdot "), strings.Contains(line, "// smlal"):
			c.mulAdds++
		case strings.HasPrefix(line, "\tFLDP"):
			c.loads += 2
		case strings.Contains(line, "// ldr ") || strings.HasPrefix(line, "\tFMOV"):
			c.loads++
		case line == "\tBNE "+label:
			return c
		}
	}
	return count{}
}

// The inner loops on arm64 have the instructions that docs/measurements.md reckons with.
func TestInnerLoops(t *testing.T) {
	files := generate()
	for _, c := range []struct {
		file, function, label string
		want                  count
	}{
		{"gemm", "tile6x4NEON<>", "steps", count{117, 96, 22}},
		{"gemm", "tile6x4NEON<>", "step", count{36, 24, 10}},
		{"gemm", "tile3x4NEON<>", "steps", count{66, 48, 19}},
		{"gemm", "tile1x4NEON<>", "steps", count{32, 16, 17}},
		{"doublegemm", "·dTileNEON", "step", count{31, 24, 8}},
		{"lanes", "dotLanes3NEON<>", "step", count{41, 24, 20}},
		{"lanes", "dotLanes1NEON<>", "step", count{33, 16, 20}},
		{"quant", "quantBytes6x4Dot<>", "steps", count{114, 96, 22}},
		{"quant", "quantWords6x4NEON<>", "steps", count{210, 192, 22}},
		{"vector", "·addBlocks", "next", count{20, 0, 12}},
		{"vector", "·mulAddBlocks", "next", count{30, 0, 16}},
		{"vector", "·reluBlocks", "next", count{20, 0, 8}},
		{"vector", "·dotBlocks", "next", count{20, 0, 8}},
		{"vector", "·expBlocks", "next", count{144, 32, 8}},
		{"vector", "·sigmoidBlocks", "next", count{136, 32, 8}},
		{"vector", "·tanhBlocks", "next", count{144, 32, 12}},
		{"double", "·dExpBlocks", "next", count{208, 56, 56}},
		{"double", "·dLogBlocks", "next", count{232, 32, 56}},
	} {
		text := string(files[c.file+"_neon_arm64.s"])
		if got := loop(text, c.function, c.label); got != c.want {
			t.Errorf("%s, %s: %+v, want %+v", c.function, c.label, got, c.want)
		}
	}
}
