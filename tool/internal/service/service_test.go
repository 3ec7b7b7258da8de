package service_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/tool/internal/service"
	"github.com/nnopt/nnopt/tool/internal/view"
)

// TestServerFiles: a page brings files and names them. It can't name others, and hears nothing of
// where they are.
func TestServerFiles(t *testing.T) {
	e := &engine{t: t, release: make(chan struct{})}
	defer close(e.release)
	outside := t.TempDir()
	dir := filepath.Join(outside, "files")
	for _, err := range []error{os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o666), os.WriteFile(filepath.Join(outside, "given"), []byte("given"), 0o666)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := service.NewServer(e, record(t, "x*y/y"), view.Input{}, dir)
	s.Allow("allowed", filepath.Join(outside, "given"))
	srv := httptest.NewServer(s)
	defer srv.Close()
	bytes := []string{"Content-Type", "application/octet-stream"}
	for _, c := range []struct {
		path   string
		header []string
		want   int
	}{
		{"my.graph", bytes, 204},
		{"my.graph", nil, 415},
		{"..%2Fsecret", bytes, 403},
		{"..", bytes, 404},
		{"my.graph", append(bytes[:2:2], "Origin", "http://evil.example"), 403},
	} {
		if got, text := ask(t, "PUT", srv.URL+"/api/file/"+c.path, "a graph", c.header...); got != c.want {
			t.Errorf("PUT %s: %d %s, want %d", c.path, got, text, c.want)
		}
	}
	for _, c := range []struct{ body, want string }{
		{`{"file": "my.graph", "format": "graph"}`, "a graph"},
		{`{"file": "allowed", "format": "graph"}`, "given"},
		{`{"file": "../secret", "format": "graph"}`, "there is no file"},
		{`{"file": "..", "format": "graph"}`, "there is no file"},
		{`{"file": "gone", "format": "graph"}`, "there is no file"},
		{`{"file": "my.graph", "format": "other"}`, `{"error":"my.graph: no such format"}`},
		{`{"file": "my.graph", "format": 1}`, "the request"},
	} {
		if _, text := ask(t, "POST", srv.URL+"/api/export", c.body); !strings.Contains(text, c.want) || strings.Contains(text, outside) {
			t.Errorf("%s: %s", c.body, text)
		}
	}
	if _, text := ask(t, "POST", srv.URL+"/api/try", `{"expr": "x", "seed": 7}`); !strings.Contains(text, "x7") {
		t.Errorf("try: %s", text)
	}
}
