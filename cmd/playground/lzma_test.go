package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestUnpack: what lzma and asText make, the page's scripts unpack.
func TestUnpack(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("left out: there is no node")
	}
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 5000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	var similar []byte
	for i := range 3000 {
		similar = append(similar, noise[(i*7)%100:(i*7)%100+r.IntN(40)]...)
		similar = append(similar, byte(i))
	}
	self, err := os.ReadFile("lzma.go")
	if err != nil {
		t.Fatal(err)
	}
	cases := [][]byte{{}, {0}, []byte("aaaaaaaaaaaaaaaaaaaaaaaa"), noise, similar, self, bytes.Repeat([]byte("abcd"), 100_000), append(append([]byte{}, noise...), noise...)}
	var texts []string
	for _, c := range cases {
		text := asText(lzma(c))
		if strings.ContainsAny(text, "\x00\r<") {
			t.Error("a text has what a page would change")
		}
		texts = append(texts, text)
	}
	script, err := files.ReadFile("worker/lzma.js")
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "-")
	cmd.Stdin = strings.NewReader(string(script) + "\nfor (const t of " + string(list) + ") console.log(Buffer.from(unlzma(unpacked(t))).toString(\"hex\"));\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	for i, c := range cases {
		if want := hex.EncodeToString(c); lines[i] != want {
			t.Errorf("case %d: %d bytes are %d digits: %.60s, not %.60s", i, len(c), len(lines[i]), lines[i], want)
		}
	}
}

func TestLimited(t *testing.T) {
	// A module with a type, a memory of 3 pages without a limit, and a section after it.
	module := []byte{0, 'a', 's', 'm', 1, 0, 0, 0, 1, 1, 0, 5, 3, 1, 0, 3, 0, 1, 0}
	want := []byte{0, 'a', 's', 'm', 1, 0, 0, 0, 1, 1, 0, 5, 5, 1, 1, 3, 0x80, 2, 0, 1, 0}
	if got, err := limited(module, 256); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, m := range [][]byte{module[:11], module[:13], want} {
		if _, err := limited(m, 256); err == nil {
			t.Errorf("%v has a limit", m)
		}
	}
}
