//go:build !js

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/tool/internal/view"
)

// Limits of a Server.
const (
	maxBody   = 64 << 10         // bytes of a question
	maxFile   = 1 << 30          // bytes of a file that a page brings
	maxTime   = 20 * time.Second // for an answer
	maxAtOnce = 2                // requests that are worked on
)

// A Server serves the page of a subject, and answers what it asks. It is an http.Handler for the
// loopback address: it refuses requests that come by another name, so that no other page can ask
// anything by having its name lead here, and requests of other pages. A request may take a limited
// time and number of bytes, and ends when its client goes.
type Server struct {
	*Service
	name  string // the host that the address was given as
	mux   *http.ServeMux
	slots chan struct{}
}

// NewServer returns a server of the page of a subject. in is what the page begins with. Files that a
// page brings are kept in dir; without one, pages can't bring any.
func NewServer(e Engine, s *view.Subject, in view.Input, dir string) *Server {
	srv := &Server{Service: NewService(e, s, in, dir), mux: http.NewServeMux(), slots: make(chan struct{}, maxAtOnce)}
	srv.mux.HandleFunc("GET /{$}", srv.page)
	srv.mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	srv.mux.HandleFunc("GET /api/passes", srv.answer)
	for name := range questions {
		srv.mux.HandleFunc("POST /api/"+name, srv.answer)
	}
	srv.mux.HandleFunc("PUT /api/file/{name}", srv.put)
	return srv
}

// Serve serves the listener until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: maxTime + 10*time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
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
	var text bytes.Buffer
	policy, err := view.WriteServed(&text, s.subject.Recording)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text.Bytes()) // the client may be gone
}

// answer answers a question.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	var body []byte
	if r.Method == http.MethodPost {
		var status int
		var err error
		if status, body, err = read(w, r); err != nil {
			refuse(w, status, err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxTime)
	defer cancel()
	name := path.Base(r.URL.Path)
	pieces := false
	out, err := work(ctx, s.slots, func(piece part) ([]byte, error) { return s.Answer(ctx, name, body, piece) }, func(line []byte) {
		if !pieces {
			pieces = true
			w.Header().Set("Content-Type", "application/jsonl")
		}
		_, _ = w.Write(append(line, '\n')) // the client may be gone
		_ = http.NewResponseController(w).Flush()
	})
	switch fault := (*Fault)(nil); {
	case pieces:
		// The status is sent already, so what is wrong is the last line.
		if err != nil {
			out = FaultText(err)
		}
		_, _ = w.Write(out)
	case err == nil:
		kind := "application/json"
		if name == "export" {
			kind = "application/octet-stream"
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(out) // the client may be gone
	case errors.As(err, &fault):
		// Not a failure: browsers would report one, although people mistype all the time.
		refuse(w, http.StatusOK, fault)
	case errors.Is(err, errRequest):
		refuse(w, http.StatusBadRequest, err)
	case errors.Is(err, view.ErrNowhere):
		refuse(w, http.StatusUnprocessableEntity, err)
	case ctx.Err() != nil:
		refuse(w, http.StatusServiceUnavailable, &Fault{Text: fmt.Sprintf("no answer within %v", maxTime)})
	default:
		refuse(w, http.StatusInternalServerError, err)
	}
}

// read reads the JSON of a question.
func read(w http.ResponseWriter, r *http.Request) (status int, body []byte, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, nil, &Fault{Text: "Content-Type must be application/json"}
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return http.StatusRequestEntityTooLarge, nil, &Fault{Text: fmt.Sprintf("a request has at most %d bytes", maxBody)}
	}
	if err == nil && len(body) == 0 {
		err = fmt.Errorf("%w: %w", errRequest, io.EOF)
	}
	return http.StatusBadRequest, body, err
}

// put keeps a file that a page brings.
func (s *Server) put(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	// A form of another page could send this type without asking first, were it text.
	if kind := r.Header.Get("Content-Type"); kind != "application/octet-stream" {
		refuse(w, http.StatusUnsupportedMediaType, &Fault{Text: "Content-Type must be application/octet-stream"})
		return
	}
	if s.dir == "" || name != filepath.Base(name) || name == "." || name == ".." {
		refuse(w, http.StatusForbidden, &Fault{Text: "such a file can't be kept"})
		return
	}
	body := http.MaxBytesReader(w, r.Body, maxFile)
	err := fileio.Replace(r.Context(), filepath.Join(s.dir, name), func(f io.Writer) error {
		_, err := io.Copy(f, body)
		return err
	})
	switch large := (*http.MaxBytesError)(nil); {
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, &Fault{Text: fmt.Sprintf("a file has at most %d bytes", maxFile)})
	case err != nil:
		refuse(w, http.StatusInternalServerError, err)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// work runs do when there is a free slot, and returns when it has ended or the context has. What
// doesn't heed the context keeps its slot to its end. Pieces of its answer are written here, as long as
// there is somebody to read them.
func work(ctx context.Context, slots chan struct{}, do func(part) ([]byte, error), write part) ([]byte, error) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type result struct {
		out []byte
		err error
	}
	done, pieces := make(chan result, 1), make(chan []byte)
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
		out, err := do(func(piece []byte) {
			select {
			case pieces <- piece:
			case <-ctx.Done():
			}
		})
		done <- result{out, err}
	}()
	for {
		select {
		case piece := <-pieces:
			write(piece)
		case r := <-done:
			return r.out, r.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(FaultText(err)) // the client may be gone
}
