package profile

import (
	"encoding/json"
	"io"
	"time"
)

// A traceEvent is an entry of the Trace Event Format, which Chrome's tracing page
// and Perfetto read. Times are in microseconds.
type traceEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	TS    float64        `json:"ts"`
	Dur   *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// WriteTrace writes the run of the optimizer as Trace Event JSON. Every rewriter and
// every pass of an equilibrium is a slice on one track, and the number of nodes is a
// counter. The passes of an equilibrium are placed end to end from its start, since
// only their durations are recorded.
func (f *Function) WriteTrace(w io.Writer) error {
	events := []traceEvent{{
		Name: "process_name", Phase: "M", PID: 1, TID: 1,
		Args: map[string]any{"name": "nnopt " + f.Message},
	}}
	for _, r := range f.Optimizer.All() {
		events = append(events, recordEvents(r)...)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		TraceEvents     []traceEvent `json:"traceEvents"`
		DisplayTimeUnit string       `json:"displayTimeUnit"`
	}{events, "ms"})
}

func recordEvents(r *Record) []traceEvent {
	args := map[string]any{
		"nodes before": r.NodesBefore, "nodes after": r.NodesAfter, "changed": r.Changed,
		"validate (us)": micros(r.Validate), "callback (us)": micros(r.Callback),
	}
	if r.Prepare > 0 {
		args["making rules (us)"] = micros(r.Prepare)
	}
	for _, c := range r.Counters {
		args[c.Name] = c.Text()
	}
	for _, u := range r.Rules {
		if u.Applied > 0 {
			args["rule "+u.Name] = u.Applied
		}
	}
	events := []traceEvent{slice(r.Name, r.Class, r.Start, r.Time, args), nodes(r.Start, r.NodesBefore)}
	at := r.Start
	for i := range r.Passes {
		p := &r.Passes[i]
		args := map[string]any{"pass": i, "applied": p.Applied, "nodes": p.Nodes}
		for _, c := range p.Rules {
			args["rule "+c.Name] = c.Count
		}
		events = append(events, slice(r.Name+" pass", "pass", at, p.Time, args), nodes(at, p.Nodes))
		at += p.Time
	}
	// A counter keeps its value until its next event, so that it has to be set at the end, too.
	return append(events, nodes(r.Start+r.Time, r.NodesAfter))
}

func slice(name, cat string, start, length time.Duration, args map[string]any) traceEvent {
	dur := micros(length)
	return traceEvent{Name: name, Cat: cat, Phase: "X", TS: micros(start), Dur: &dur, PID: 1, TID: 1, Args: args}
}

func nodes(at time.Duration, n int) traceEvent {
	return traceEvent{Name: "nodes", Phase: "C", TS: micros(at), PID: 1, TID: 1, Args: map[string]any{"nodes": n}}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
