package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tool/internal/service"
	"github.com/nnopt/nnopt/tool/internal/view"
)

// An engine optimizes expressions, and counts that. An expression "wait" waits for the end of its
// context, "hang" for the end of the test, "panic" panics.
type engine struct {
	t       *testing.T
	mu      sync.Mutex
	asked   int
	ended   chan error
	release chan struct{}
}

func (e *engine) Optimize(ctx context.Context, in view.Input) (*view.Subject, error) {
	e.mu.Lock()
	e.asked++
	e.mu.Unlock()
	switch in.Expr {
	case "wait":
		<-ctx.Done()
		e.ended <- ctx.Err()
		return nil, ctx.Err()
	case "hang":
		<-e.release
		return nil, errors.New("too late")
	case "panic":
		panic("what now")
	}
	s, err := view.Record(ctx, passtest.Optimizer(e.t, "+fast_run"), graph(in.Variables, in.Expr))
	if err != nil && ctx.Err() == nil {
		err = &service.Fault{Text: err.Error(), Column: 7}
	}
	return s, err
}

func (e *engine) Check(context.Context, string, string) ([]service.Checked, error) {
	return []service.Checked{{Name: "rule1", Class: "wrong"}}, nil
}

func (e *engine) Find(_ context.Context, in service.Search, found func(service.Discovery)) (*service.SearchEnd, error) {
	for i := range in.Size {
		found(service.Discovery{Name: fmt.Sprint("rule", i)})
	}
	if in.Ops == "" {
		return nil, &service.Fault{Text: "no ops"}
	}
	return &service.SearchEnd{Names: []string{"rule0"}}, nil
}

func (e *engine) Try(_ context.Context, in view.Input, seed uint64) (*service.Trial, error) {
	return &service.Trial{Outputs: []string{fmt.Sprint(in.File, in.Expr, seed)}}, nil
}

func (e *engine) Export(_ context.Context, in view.Input, format string) ([]byte, error) {
	if format != "graph" {
		return nil, &service.Fault{Text: in.File + ": no such format"}
	}
	text, err := os.ReadFile(in.File)
	return text, err
}

func (e *engine) Choices(string) ([]service.Choice, error) {
	return []service.Choice{{Name: "merge1"}}, nil
}

// serve starts a server.
func serve(t *testing.T) (*engine, *httptest.Server) {
	t.Helper()
	e := &engine{t: t, ended: make(chan error, 8), release: make(chan struct{})}
	s := service.NewServer(e, record(t, "x*y/y"), view.Input{Expr: "x*y/y"}, "")
	srv := httptest.NewServer(s)
	t.Cleanup(func() { close(e.release); srv.Close() })
	return e, srv
}

// ask sends a request and returns the status and the body.
func ask(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		} else {
			req.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Header.Get("Access-Control-Allow-Origin") != "" || resp.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("%s %s: headers %v", method, url, resp.Header)
	}
	return resp.StatusCode, string(text)
}

// TestServerRefuses: requests by another name, of another page, of another form and too large ones
// are refused, and reach no engine.
func TestServerRefuses(t *testing.T) {
	e, srv := serve(t)
	host := strings.TrimPrefix(srv.URL, "http://")
	_, port, _ := net.SplitHostPort(host)
	large := fmt.Sprintf(`{"expr": %q}`, strings.Repeat("x+", 1<<16)+"x")
	for _, c := range []struct {
		method, path, body string
		header             []string
		want               int
	}{
		{"GET", "/", "", nil, 200},
		{"GET", "/", "", []string{"Host", "localhost:" + port}, 200},
		{"GET", "/", "", []string{"Host", "[::1]:" + port}, 200},
		{"GET", "/", "", []string{"Host", "evil.example"}, 421},
		{"GET", "/", "", []string{"Host", "127.0.0.1.evil.example:" + port}, 421},
		{"GET", "/api/passes", "", []string{"Host", "localhost.evil.example"}, 421},
		{"GET", "/api/passes", "", []string{"Origin", "http://evil.example"}, 403},
		{"GET", "/api/passes", "", []string{"Origin", "null"}, 403},
		{"GET", "/api/passes", "", []string{"Origin", srv.URL}, 200},
		{"GET", "/api/passes", "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"GET", "/", "", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"GET", "/", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"GET", "/", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403},
		{"GET", "/api/passes", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}, 403},
		{"POST", "/api/optimize", `{"expr": "x"}`, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"GET", "/api/optimize", "", nil, 405},
		{"OPTIONS", "/api/optimize", "", nil, 405},
		{"GET", "/../recording.go", "", nil, 404},
		{"GET", "/page/index.html", "", nil, 404},
		{"GET", "/favicon.ico", "", nil, 204},
		{"POST", "/api/optimize", `{"expr": "x"}`, []string{"Content-Type", "text/plain"}, 415},
		{"POST", "/api/optimize", `{"expr": "x"}`, []string{"Content-Type", ""}, 415},
		{"POST", "/api/optimize", `{"expr": "x"`, nil, 400},
		{"POST", "/api/optimize", `{"expr": "x"} {}`, nil, 400},
		{"POST", "/api/optimize", `{"exprs": "x"}`, nil, 400},
		{"POST", "/api/optimize", `[1]`, nil, 400},
		{"POST", "/api/optimize", large, nil, 413},
		{"POST", "/api/whynot", `{"step": -1, "node": 0}`, nil, 422},
		{"POST", "/api/whynot", `{"step": 0, "node": 99}`, nil, 422},
		{"POST", "/api/whynot", `{"step": 99, "node": 0}`, nil, 422},
	} {
		if got, text := ask(t, c.method, srv.URL+c.path, c.body, c.header...); got != c.want {
			t.Errorf("%s %s %.40q %q: status %d, want %d: %.200s", c.method, c.path, c.body, c.header, got, c.want, text)
		}
	}
	if e.asked != 0 {
		t.Errorf("the engine was asked %d times", e.asked)
	}
}

// TestServerAnswers: expressions are optimized once, errors have their place, and a panic is an
// error.
func TestServerAnswers(t *testing.T) {
	e, srv := serve(t)
	status, text := ask(t, "POST", srv.URL+"/api/optimize", `{"expr": "exp(log(x))"}`)
	if status != 200 || !strings.Contains(text, `"kind":"expression"`) || !strings.Contains(text, `"live":{"expr":"exp(log(x))"}`) {
		t.Errorf("status %d, %.300s", status, text)
	}
	status, text = ask(t, "POST", srv.URL+"/api/whynot", `{"expr": "exp(log(x))", "step": 0, "node": 0, "rule": "local_func_inv"}`)
	if status != 200 || !strings.Contains(text, "canonicalize/local_func_inv") || e.asked != 1 {
		t.Errorf("status %d, asked %d times, %.300s", status, e.asked, text)
	}
	status, text = ask(t, "POST", srv.URL+"/api/optimize", `{"expr": "x +"}`)
	if status != 200 || !strings.Contains(text, `"column":7`) {
		t.Errorf("status %d, %.300s", status, text)
	}
	status, text = ask(t, "POST", srv.URL+"/api/optimize", `{"expr": "panic"}`)
	if status != 500 || !strings.Contains(text, "what now") || strings.Contains(text, "goroutine") {
		t.Errorf("status %d, %.300s", status, text)
	}
	if status, text = ask(t, "GET", srv.URL+"/api/passes", ""); status != 200 || !strings.Contains(text, "merge1") {
		t.Errorf("status %d, %.300s", status, text)
	}
	if status, text = ask(t, "POST", srv.URL+"/api/check", `{"rules": "(neg x) => x"}`); status != 200 || !strings.Contains(text, "wrong") {
		t.Errorf("status %d, %.300s", status, text)
	}
}

// TestServerEnds: work ends when its client goes, and when the server does.
func TestServerEnds(t *testing.T) {
	e := &engine{t: t, ended: make(chan error, 8)}
	s := service.NewServer(e, record(t, "x*y/y"), view.Input{}, "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	post := func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, "POST", "http://"+l.Addr().String()+"/api/optimize", strings.NewReader(`{"expr": "wait"}`))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	client, leave := context.WithCancel(t.Context())
	go func() {
		for { // until the engine has been asked
			e.mu.Lock()
			asked := e.asked
			e.mu.Unlock()
			if asked > 0 {
				leave()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if err := post(client); !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	if err := <-e.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("work ended with %v", err)
	}
	go func() { _ = post(t.Context()) }() // it fails or not, as it happens
	for {
		e.mu.Lock()
		asked := e.asked
		e.mu.Unlock()
		if asked > 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if err := <-e.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("work ended with %v", err)
	}
}

// TestServerIsBusy: what does not end keeps no others waiting beyond their time, and takes no more
// than its slots.
func TestServerIsBusy(t *testing.T) {
	e, srv := serve(t)
	for range 6 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		req, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/api/optimize", strings.NewReader(`{"expr": "hang"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			t.Error("an answer of what does not end")
		}
		cancel()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked > 2 {
		t.Errorf("%d requests at once", e.asked)
	}
}

// TestServerPieces: rules come line by line, before the answer or the error that ends them.
func TestServerPieces(t *testing.T) {
	_, srv := serve(t)
	lines := `{"name":"rule0","text":"","file":"","class":"","before":0,"after":0}` + "\n" + `{"name":"rule1","text":"","file":"","class":"","before":0,"after":0}` + "\n"
	for _, c := range []struct{ body, want string }{
		{`{"ops": "add", "size": 2}`, lines + `{"names":["rule0"],"summary":""}`},
		{`{"ops": "", "size": 2}`, lines + `{"error":"no ops"}`},
		{`{"ops": "add"}`, `{"names":["rule0"],"summary":""}`},
		{`{"ops": ""}`, `{"error":"no ops"}`},
	} {
		if status, text := ask(t, "POST", srv.URL+"/api/find", c.body); status != http.StatusOK || strings.TrimSpace(text) != c.want {
			t.Errorf("%s: %d %s", c.body, status, text)
		}
	}
}
