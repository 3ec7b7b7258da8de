package view_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tool/internal/view"
)

// maxPage is the number of bytes that the page of a network of full size may have.
const maxPage = 1_500_000

// TestPage: a page refers to nothing outside, its policy allows what is in it and nothing else,
// for names of any kind, and it gives its recording back.
func TestPage(t *testing.T) {
	hostile := `</script><script>alert(1)</script><!--` + "\u2028" + `'"&`
	small := record(t, "+fast_run", "", "x*y/y")
	full, _ := network(t, "../../../nnet3/testdata/models/tdnnf_1k.config", demoChunk, "+fast_run")
	if err := full.AddMisses(t.Context()); err != nil {
		t.Fatal(err)
	}
	none, err := view.NewProfile(&profile.Function{Message: hostile})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*view.Recording{small.Recording, full.Recording, none} {
		if len(r.Values) > 0 {
			r.Values[0].Name = hostile
		}
		r.Title, r.Subject = hostile, hostile
		var page bytes.Buffer
		if err := view.WritePage(&page, r); err != nil {
			t.Fatal(err)
		}
		text := page.String()
		if page.Len() > maxPage {
			t.Errorf("the page has %d bytes", page.Len())
		}
		policy := html.UnescapeString(regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`).FindStringSubmatch(text)[1])
		if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("policy %s", policy)
		}
		scripts := regexp.MustCompile(`(?is)<(script|style)>(.*?)</(?:script|style)>`).FindAllStringSubmatch(text, -1)
		for _, s := range scripts {
			sum := sha256.Sum256([]byte(s[2]))
			if !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
				t.Errorf("the policy does not allow a %s of the page", s[1])
			}
			text = strings.Replace(text, s[0], "", 1)
		}
		if len(scripts) != 2 {
			t.Errorf("%d scripts and style sheets", len(scripts))
		}
		if m := regexp.MustCompile(`(?i)(src|href|action)="[^"#d]|alert\(1\)</script>|<script>`).FindString(text); m != "" {
			t.Errorf("the page has %q", m)
		}
		back, err := view.ReadPage(&page)
		if err != nil {
			t.Fatal(err)
		}
		a, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(back)
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("the recording that is read back differs: %v", err)
		}
	}
}

// TestPageIsPlain: a terminal, and what makes text safe for one, change nothing of the page.
func TestPageIsPlain(t *testing.T) {
	var page, plain bytes.Buffer
	w := fileio.NewPlainWriter(&plain)
	if err := errors.Join(view.WritePage(io.MultiWriter(&page, w), record(t, "+fast_run", "", "x*y/y").Recording), w.Close()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page.Bytes(), plain.Bytes()) {
		t.Error("the page has characters that could steer a terminal")
	}
}

// TestProfilePage: the page of a profile has all that is in the profile.
func TestProfilePage(t *testing.T) {
	demo, plan := network(t, "../../networks/demo/tdnnf.config", demoChunk, "+fast_run")
	f := &profile.Function{Message: "a", CompileTime: plan.CompileTime, Optimizer: plan.Profile, Calls: 3,
		Phases: []profile.Phase{{Name: "p", Time: 5}}, Execution: []profile.OpCost{{Name: "op", Calls: 3}}}
	r, err := view.NewProfile(f)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for depth, rec := range plan.Profile.All() {
		p := r.Passes[i]
		if p.Name != rec.Name || p.Time != rec.Time || len(p.Rules) != len(rec.Rules) || len(p.Laps) != len(rec.Passes) || (p.Parent < 0) != (depth == 0) {
			t.Errorf("pass %d: %+v, want %+v", i, p, rec)
		}
		if q := demo.Recording.Passes[i]; q.Name != p.Name || q.Start != p.Start || q.Changed != p.Changed {
			t.Errorf("pass %d: %+v in the recording, %+v in the profile", i, q, p)
		}
		i++
	}
	if i != len(r.Passes) || r.Calls != 3 || len(r.Phases) != 1 || len(r.Execution) != 1 || !strings.Contains(r.Report, "Optimizer Profile") {
		t.Errorf("%d passes, want %d; %+v", len(r.Passes), i, r)
	}
}

// TestReadPageMistakes: what is no page of a recording is an error.
func TestReadPageMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "no recording",
		"<!DOCTYPE html><p>nothing</p>": "no recording",
		`<script type="application/json" id="recording">{</script>`:                                          "unexpected EOF",
		`<script type="application/json" id="recording">{"format": "other"}</script>`:                        `format "other"`,
		`<script type="application/octet-stream;base64" id="recording-gz">AAAAAAAAAAAAAAAAAAAAAAAA</script>`: "gzip",
		`<script type="application/octet-stream;base64" id="recording-gz">!!!!!!!!!!!!!!!!!!!!!!!!</script>`: "illegal base64",
	} {
		if _, err := view.ReadPage(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
