package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Limits of a Server.
const (
	maxBody     = 64 << 10         // bytes of a request
	maxTime     = 20 * time.Second // for an answer
	maxAtOnce   = 2                // requests that are worked on
	maxSubjects = 4                // that are kept to ask about
)

// An Engine does what pages ask a Server for. Its errors about what was typed are *Fault.
type Engine interface {
	// Optimize optimizes an expression.
	Optimize(ctx context.Context, in Input) (*Subject, error)
	// Check has rules checked by the machine, see package rulecheck.
	Check(ctx context.Context, rules, variables string) ([]Checked, error)
	// Choices lists the passes of the database, and says which of them a query selects.
	Choices(query string) ([]Choice, error)
}

// An Input is an expression, and how to optimize it.
type Input struct {
	Expr      string   `json:"expr,omitempty"`
	Variables string   `json:"variables,omitempty"` // their types, as --vars of "nnopt expr" takes them
	Grad      string   `json:"grad,omitempty"`      // variables; their gradients take the place of the expression
	Query     string   `json:"query,omitempty"`
	Without   []string `json:"without,omitempty"` // passes to leave out
	Rules     string   `json:"rules,omitempty"`   // more rules, one a line, or a file of rules
}

// A Fault is what is wrong with what was typed, or with a request. The answer to what was mistyped
// has the status 200.
type Fault struct {
	Text   string `json:"error"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"` // from 1, in bytes
}

func (f *Fault) Error() string { return f.Text }

// Checked is what the machine finds about a rule.
type Checked struct {
	Name           string   `json:"name"`
	Rule           string   `json:"text"`
	Class          string   `json:"class"`
	Tags           []string `json:"tags,omitempty"`
	Kept           bool     `json:"ok"` // it is what its tags promise
	Counterexample string   `json:"counterexample,omitempty"`
}

// A Choice is a pass or rule that a query may select.
type Choice struct {
	Name     string   `json:"name"`
	Path     string   `json:"path"`
	Doc      string   `json:"doc,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	Position float64  `json:"position"`
	Rule     bool     `json:"rule,omitempty"` // a node rewriter
	On       bool     `json:"on"`
}

// A Server serves the page of a subject, and answers what it asks. It is an http.Handler for the
// loopback address: it refuses requests that come by another name, so that no other page can ask
// anything by having its name lead here, and requests of other pages. A request may take a limited
// time and number of bytes, and ends when its client goes.
type Server struct {
	engine  Engine
	name    string // the host that the address was given as
	subject *Subject
	mux     *http.ServeMux
	slots   chan struct{}

	mu     sync.Mutex
	recent []recent // what was optimized, the last one last
}

// recent is a subject with its input as JSON.
type recent struct {
	key     string
	subject *Subject
}

// NewServer returns a server of the page of a subject. in is what the page begins with.
func NewServer(e Engine, s *Subject, in Input) *Server {
	// The recording is copied: the same one may also be written to a file, where there is no server
	// to ask.
	live := *s.Recording
	live.Live = &in
	srv := &Server{engine: e, subject: &Subject{&live, s.Optimizer, s.Run}, mux: http.NewServeMux(), slots: make(chan struct{}, maxAtOnce)}
	srv.mux.HandleFunc("GET /{$}", srv.page)
	srv.mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	srv.mux.HandleFunc("GET /api/passes", answer(srv, srv.passes))
	srv.mux.HandleFunc("POST /api/optimize", answer(srv, srv.optimize))
	srv.mux.HandleFunc("POST /api/check", answer(srv, srv.check))
	srv.mux.HandleFunc("POST /api/whynot", answer(srv, srv.whyNot))
	return srv
}

// Serve serves the listener until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: maxTime + 10*time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: nil,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Name makes the server accept requests by the name of a host, besides localhost and addresses.
func (s *Server) Name(host string) { s.name = host }

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	switch {
	case !s.knows(r.Host):
		refuse(w, http.StatusMisdirectedRequest, &Fault{Text: "the page is not served under this name; use the address that was printed"})
	case foreign(r):
		refuse(w, http.StatusForbidden, &Fault{Text: "another page may not ask"})
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// knows reports whether the server goes by a host: an address, localhost, or its name. A name that
// others gave to the address could belong to a page of theirs.
func (s *Server) knows(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return strings.EqualFold(host, "localhost") || s.name != "" && strings.EqualFold(host, s.name)
}

// foreign reports whether a browser says that another page sent the request. A link to this page is
// no such request: it shows the page to the user, and nothing of it to the page with the link.
func foreign(r *http.Request) bool {
	follows := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" && !follows {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host
}

// page writes the page.
func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	shell, err := loadShell()
	var text bytes.Buffer
	if err == nil {
		err = shell.write(&text, s.subject.Recording, "")
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Security-Policy", shell.served)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text.Bytes()) // the client may be gone
}

// answer makes a handler of a function from a request to an answer, both JSON. A request without
// a body leaves its value as it is.
func answer[In, Out any](s *Server, do func(context.Context, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if r.Method == http.MethodPost {
			if status, err := decode(w, r, &in); err != nil {
				refuse(w, status, err)
				return
			}
		}
		ctx, cancel := context.WithTimeout(r.Context(), maxTime)
		defer cancel()
		out, err := work(ctx, s.slots, func() ([]byte, error) {
			out, err := do(ctx, in)
			if err != nil {
				return nil, err
			}
			return json.Marshal(out)
		})
		switch fault := (*Fault)(nil); {
		case err == nil:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(out) // the client may be gone
		case errors.As(err, &fault):
			// Not a failure: browsers would report one, although people mistype all the time.
			refuse(w, http.StatusOK, fault)
		case errors.Is(err, errNowhere):
			refuse(w, http.StatusUnprocessableEntity, err)
		case ctx.Err() != nil:
			refuse(w, http.StatusServiceUnavailable, &Fault{Text: fmt.Sprintf("no answer within %v", maxTime)})
		default:
			refuse(w, http.StatusInternalServerError, err)
		}
	}
}

// decode reads the JSON of a request.
func decode(w http.ResponseWriter, r *http.Request, in any) (status int, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, &Fault{Text: "Content-Type must be application/json"}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err = d.Decode(in)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows the JSON object")
		}
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return http.StatusRequestEntityTooLarge, &Fault{Text: fmt.Sprintf("a request has at most %d bytes", maxBody)}
	}
	if err != nil {
		return http.StatusBadRequest, &Fault{Text: "the request: " + err.Error()}
	}
	return 0, nil
}

// work runs do when there is a free slot, and returns when it has ended or the context has. What
// doesn't heed the context keeps its slot to its end.
func work(ctx context.Context, slots chan struct{}, do func() ([]byte, error)) ([]byte, error) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type result struct {
		out []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		// The slot is given back by the goroutine that works, and not by the request. So an engine
		// that goes on after its context has ended can't be started over and over, until the
		// machine is busy with answers that have no reader.
		defer func() { <-slots }()
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: fmt.Errorf("internal error: %v", p)}
			}
		}()
		out, err := do()
		done <- result{out, err}
	}()
	select {
	case r := <-done:
		return r.out, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, err error) {
	var fault *Fault
	if !errors.As(err, &fault) {
		fault = &Fault{Text: err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(fault) // the client may be gone
}

// optimize answers api/optimize.
func (s *Server) optimize(ctx context.Context, in Input) (*Recording, error) {
	subject, err := s.find(ctx, in)
	if err != nil {
		return nil, err
	}
	return subject.Recording, nil
}

// find returns the subject of an input, from what was optimized before if it is there.
func (s *Server) find(ctx context.Context, in Input) (*Subject, error) {
	key, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	// Questions why a rule does not fire come by the dozen for one expression, each with the whole
	// input: requests carry no state. To optimize it again for each would take most of the time.
	if have := s.kept(string(key)); have != nil {
		return have, nil
	}
	subject, err := s.engine.Optimize(ctx, in)
	if err != nil {
		return nil, err
	}
	subject.Recording.Live = &in
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent = append(s.recent, recent{string(key), subject}); len(s.recent) > maxSubjects {
		s.recent = append([]recent(nil), s.recent[1:]...)
	}
	return subject, nil
}

// kept returns a subject that was optimized before, or nil.
func (s *Server) kept(key string) *Subject {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.recent {
		if r.key == key {
			return r.subject
		}
	}
	return nil
}

// A question asks why rules do not fire at a node, after some steps. Without an expression it is
// about the subject of the server.
type question struct {
	Input
	Step int    `json:"step"`
	Node int32  `json:"node"`
	Rule string `json:"rule,omitempty"`
}

type answers struct {
	Misses []Answer `json:"misses"`
}

// whyNot answers api/whynot.
func (s *Server) whyNot(ctx context.Context, q question) (out answers, err error) {
	subject := s.subject
	if q.Expr != "" {
		if subject, err = s.find(ctx, q.Input); err != nil {
			return out, err
		}
	}
	if subject.Run == nil {
		return out, &Fault{Text: "there is only a profile, and no graph"}
	}
	out.Misses, err = subject.WhyNot(ctx, q.Step, q.Node, q.Rule)
	return out, err
}

// check answers api/check.
func (s *Server) check(ctx context.Context, in struct {
	Rules     string `json:"rules"`
	Variables string `json:"variables"`
}) (out struct {
	Rules []Checked `json:"rules"`
}, err error) {
	out.Rules, err = s.engine.Check(ctx, in.Rules, in.Variables)
	return out, err
}

// passes answers api/passes.
func (s *Server) passes(context.Context, struct{}) (out struct {
	Passes []Choice `json:"passes"`
	Query  string   `json:"query"`
}, err error) {
	out.Query = s.subject.Recording.Live.Query
	out.Passes, err = s.engine.Choices(out.Query)
	return out, err
}
