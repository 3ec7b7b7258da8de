package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/tensor/array"
)

// limits are what clients may ask for.
type limits struct {
	body     int64         // bytes
	requests int           // at a time
	header   time.Duration // for a client to send the header of a request
	read     time.Duration // and its body, or to read the answer
	compute  time.Duration
}

// A server answers requests for models. It is safe for concurrent use once all models are added.
type server struct {
	http.Handler
	limits   limits
	models   map[string]*served
	slots    chan struct{} // one for each request in progress
	stopping atomic.Bool

	mu      sync.Mutex
	counted map[string]*count // by model and status, as metrics name them
}

// A served model computes requests together if it can.
type served struct {
	model   *model.Model
	batcher *model.Batcher // nil if the model takes no batches
	run     func(context.Context, model.Inputs) (model.Outputs, error)
}

type count struct {
	requests int
	time     time.Duration
}

func newServer(l limits) *server {
	mux := http.NewServeMux()
	s := &server{Handler: mux, limits: l, models: make(map[string]*served), slots: make(chan struct{}, l.requests), counted: make(map[string]*count)}
	mux.HandleFunc("GET /v2", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"name": "nnopt", "version": "2", "extensions": []string{"binary_tensor_data"}})
	})
	mux.HandleFunc("GET /v2/health/live", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]bool{"live": true})
	})
	mux.HandleFunc("GET /v2/health/ready", func(w http.ResponseWriter, _ *http.Request) { s.ready(w, nil) })
	for _, version := range []string{"", "/versions/{version}"} {
		path := "/v2/models/{model}" + version
		mux.HandleFunc("GET "+path, s.named(s.metadata))
		mux.HandleFunc("GET "+path+"/ready", s.named(func(w http.ResponseWriter, r *http.Request, _ *served) {
			s.ready(w, map[string]any{"name": r.PathValue("model")})
		}))
		mux.HandleFunc("POST "+path+"/infer", s.named(s.infer))
	}
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Errorf("there is no %s %s", r.Method, r.URL.Path))
	})
	return s
}

// add serves a model, which the server closes.
func (s *server) add(name string, m *model.Model, o model.BatcherOptions) {
	s.models[name] = &served{model: m, run: m.Run}
	if b, err := m.NewBatcher(o); err == nil {
		s.models[name].batcher, s.models[name].run = b, b.Run
	}
}

func (s *server) close() {
	for _, m := range s.models {
		if m.batcher != nil {
			m.batcher.Close()
		}
		m.model.Close()
	}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, err error) {
	reply(w, status, map[string]string{"error": err.Error()})
}

// ready says whether requests should come here, and what else there is to say.
func (s *server) ready(w http.ResponseWriter, body map[string]any) {
	status, ready := http.StatusOK, !s.stopping.Load()
	if !ready {
		status = http.StatusServiceUnavailable
	}
	if body == nil {
		body = make(map[string]any)
	}
	body["ready"] = ready
	reply(w, status, body)
}

// named finds the model of a request. There is one version of each.
func (s *server) named(handle func(http.ResponseWriter, *http.Request, *served)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		m := s.models[r.PathValue("model")]
		if v := r.PathValue("version"); m == nil || v != "" && v != "1" {
			refuse(w, http.StatusNotFound, fmt.Errorf("there is no model %q of version %q; models are %q, of version 1", r.PathValue("model"), v, slices.Sorted(maps.Keys(s.models))))
			return
		}
		handle(w, r, m)
	}
}

func (s *server) metadata(w http.ResponseWriter, r *http.Request, m *served) {
	list := func(values []model.Value) []tensor {
		all := make([]tensor, len(values))
		for i, v := range values {
			all[i] = tensor{Name: v.Name, Datatype: protocolName(v.Type), Shape: []int{}}
			for _, d := range v.Dims {
				all[i].Shape = append(all[i].Shape, d.Size)
			}
		}
		return all
	}
	reply(w, http.StatusOK, map[string]any{"name": r.PathValue("model"), "versions": []string{"1"}, "platform": "onnx",
		"inputs": list(m.model.Inputs()), "outputs": list(m.model.Outputs())})
}

// infer answers a request, and counts it.
func (s *server) infer(w http.ResponseWriter, r *http.Request, m *served) {
	start, status := time.Now(), http.StatusOK
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		status = http.StatusServiceUnavailable
	}
	var out *answer
	err := fmt.Errorf("there are %d requests already", cap(s.slots))
	if status == http.StatusOK {
		if out, err = s.answer(w, r, m); err != nil {
			status = statusOf(err)
		}
	}
	s.count(r.PathValue("model"), status, time.Since(start))
	// At the end of the server a connection that waits for its next request is closed, perhaps when that is on its way.
	if s.stopping.Load() {
		w.Header().Set("Connection", "close")
	}
	// A client that does not read must not keep the slot.
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.limits.read))
	if err != nil {
		refuse(w, status, err)
		return
	}
	out.write(w)
}

// errRequest is a fault of a request.
var errRequest = errors.New("bad request")

// statusOf returns the status that says whose fault an error is.
func statusOf(err error) int {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded): // of reading
		return http.StatusRequestTimeout
	case errors.Is(err, errRequest), errors.Is(err, model.ErrInput), errors.Is(err, array.ErrIndex), errors.Is(err, array.ErrTooLarge):
		return http.StatusBadRequest
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, model.ErrClosed):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// answer computes the answer to a request.
func (s *server) answer(w http.ResponseWriter, r *http.Request, m *served) (*answer, error) {
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.limits.read))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.limits.body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	http.NewResponseController(w).SetReadDeadline(time.Time{})
	req, inputs, err := readRequest(body, r.Header.Get(headerLength))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.compute)
	defer cancel()
	values, err := m.run(ctx, inputs)
	if err != nil {
		return nil, err
	}
	out := &answer{ModelName: r.PathValue("model"), ModelVersion: "1", ID: req.ID}
	if len(req.Outputs) == 0 {
		for _, v := range m.model.Outputs() {
			req.Outputs = append(req.Outputs, tensor{Name: v.Name})
		}
	}
	for _, t := range req.Outputs {
		a := values[t.Name]
		if a == nil {
			return nil, fmt.Errorf("%w: the model has no output %q", errRequest, t.Name)
		}
		binary := req.Parameters.BinaryOutput
		if t.Parameters != nil && t.Parameters.Binary != nil {
			binary = *t.Parameters.Binary
		}
		if err := out.add(t.Name, a, binary); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *server) count(name string, status int, took time.Duration) {
	key := fmt.Sprintf("model=%q,code=\"%d\"", name, status)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counted[key] == nil {
		s.counted[key] = new(count)
	}
	s.counted[key].requests++
	s.counted[key].time += took
}

// metrics writes what the server has done, as Prometheus reads it.
func (s *server) metrics(w http.ResponseWriter, _ *http.Request) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# TYPE nnopt_requests_in_progress gauge\nnnopt_requests_in_progress %d\n", len(s.slots))
	s.mu.Lock()
	keys := slices.Sorted(maps.Keys(s.counted))
	fmt.Fprintln(&b, "# TYPE nnopt_requests_total counter")
	for _, key := range keys {
		fmt.Fprintf(&b, "nnopt_requests_total{%s} %d\n", key, s.counted[key].requests)
	}
	fmt.Fprintln(&b, "# TYPE nnopt_request_seconds_total counter")
	for _, key := range keys {
		fmt.Fprintf(&b, "nnopt_request_seconds_total{%s} %s\n", key, strconv.FormatFloat(s.counted[key].time.Seconds(), 'g', -1, 64))
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	b.WriteTo(w)
}
