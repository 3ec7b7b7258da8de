package model

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor/array"
)

// ErrClosed means that a model or a batcher was used after its Close.
var ErrClosed = errors.New("model: it is closed; open it again, or close it later")

// ErrUnsupported means that a model has something that can't be computed.
var ErrUnsupported = lower.ErrUnsupported

// Options say how a model is run. The zero value is what the functions Open, OpenFS and Parse use.
type Options struct {
	// Threads is the number of threads that compute a run together where that pays; 0 means runtime.GOMAXPROCS(0).
	// It changes no bit of any result. Where more runs are done at a time than there are processors, 1 is best.
	Threads int
	// Query selects the passes that optimize the model, see optdb.ParseQuery: "fast_run +int8", or "none". "" means
	// "fast_run".
	Query string
	// Sizes fix sizes that the model leaves open, by their symbols ("batch"), or by input and axis where they have
	// none ("x.0"). The model is then one of these sizes, which passes know, and takes no others.
	Sizes map[string]int
	// MaxBytes bounds the memory that a run takes beside inputs and weights; 0 means array.DefaultMaxBytes. A run
	// that needs more fails.
	MaxBytes int64
	// Session has what else a session can do: operators of one's own, the folder of external data for Parse. Its
	// Optimizer, if any, takes the place of Query; other fields that Options have are not used.
	Session session.Options
}

// A Model is an ONNX model that can be run, by any number of goroutines at a time.
type Model struct {
	file            *onnx.Model
	options         session.Options
	session         *session.Session
	inputs, outputs []Value

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup // those in progress; it grows only while closed is false
}

// Open opens the model in a file. External data are in files beside it or below.
func Open(name string) (*Model, error) { return Options{}.Open(name) }

// OpenFS opens a model in a file system, such as an embed.FS, which has its external data, too.
func OpenFS(fsys fs.FS, name string) (*Model, error) { return Options{}.OpenFS(fsys, name) }

// Parse opens a model that is in memory, such as an embedded []byte. It keeps parts of data, which must not change any
// more.
func Parse(data []byte) (*Model, error) { return Options{}.Parse(data) }

// Open is the function Open with options.
func (o Options) Open(name string) (*Model, error) {
	file, err := onnx.ReadFile(name)
	if err != nil {
		return nil, err
	}
	m, err := o.New(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), file.Close())
	}
	return m, nil
}

// OpenFS is the function OpenFS with options.
func (o Options) OpenFS(fsys fs.FS, name string) (*Model, error) {
	file, err := onnx.ReadFS(fsys, name)
	if err != nil {
		return nil, err
	}
	return o.New(file)
}

// Parse is the function Parse with options.
func (o Options) Parse(data []byte) (*Model, error) {
	file, err := onnx.Parse(data)
	if err != nil {
		return nil, err
	}
	return o.New(file)
}

// New makes a Model of one that was read, which must not be changed any more, and which Close closes.
func (o Options) New(file *onnx.Model) (*Model, error) {
	if file.Graph == nil {
		return nil, fmt.Errorf("%w: the model has no graph", ErrUnsupported)
	}
	m := &Model{file: file.FixDefaults(), options: o.Session}
	// First of all: the descriptions, the search for gaps and the session read the sizes in the model.
	if err := fixSizes(m.file.Graph, o.Sizes); err != nil {
		return nil, err
	}
	m.inputs, m.outputs = describe(m.file.Graph.Inputs, o.Sizes), describe(m.file.Graph.Outputs, o.Sizes)
	if m.options.Optimizer == nil {
		if o.Query == "" {
			o.Query = "fast_run"
		}
		q, err := optdb.ParseQuery(o.Query)
		if err != nil {
			return nil, err
		}
		if m.options.Optimizer, err = passes.ForModels(q); err != nil {
			return nil, err
		}
	}
	if m.options.Threads = o.Threads; o.Threads <= 0 {
		m.options.Threads = runtime.GOMAXPROCS(0)
	}
	// Measuring makes each run slower. Profile makes a function of its own for it.
	m.options.MaxBytes, m.options.Profile = o.MaxBytes, false
	// Now, and all gaps at once: the first run would stop at the first of them, long after the model was
	// opened.
	gaps, err := session.Unsupported(m.file, m.options)
	if err != nil {
		return nil, err
	}
	if len(gaps) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrUnsupported, strings.Join(lists.Map(gaps, lower.Gap.String), "; "))
	}
	m.session = session.New(m.file, m.options)
	return m, nil
}

// Inputs describes the inputs in the order of the model.
func (m *Model) Inputs() []Value { return clone(m.inputs) }

// Outputs describes the outputs in the order of the model.
func (m *Model) Outputs() []Value { return clone(m.outputs) }

// File returns the model as it is run, which must not be changed.
func (m *Model) File() *onnx.Model { return m.file }

// Doubts says what the file does not tell though results depend on it, and how that is taken. Few have any.
func (m *Model) Doubts() []string { return ir.Doubts(m.file, m.options.Dir) }

// Optimizer returns what optimizes the model.
func (m *Model) Optimizer() *optdb.Optimizer { return m.options.Optimizer }

// Session returns what runs the model, which must not be used after Close.
func (m *Model) Session() *session.Session { return m.session }

// Run computes the outputs, which belong to the caller. The error is an *InputError, and an ErrInput, if the model does
// not take the inputs, and the cause of ctx if that ended. Then Run returns at once, while the op in progress, or the
// weights that a first run prepares, may keep a thread busy, and inputs in use, for some time: Close waits for that.
func (m *Model) Run(ctx context.Context, inputs Inputs) (Outputs, error) {
	arrays := make(map[string]*array.Array, len(inputs))
	if err := m.bind(arrays, inputs, true); err != nil {
		return nil, err
	}
	return m.run(ctx, arrays)
}

// run is Run for inputs that the model takes.
func (m *Model) run(ctx context.Context, arrays map[string]*array.Array) (Outputs, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	type result struct {
		out Outputs
		err error
	}
	// With room for one result, or the goroutine of a run that nobody waits for any more would never end.
	done := make(chan result, 1)
	finish := func() {
		// Deferred first, so it comes last: once it is done, Close may unmap the weights.
		defer m.runs.Done()
		defer func() {
			if p := recover(); p != nil {
				done <- result{nil, fmt.Errorf("%w: %v\n%s", exec.ErrPanic, p, debug.Stack())}
			}
		}()
		_, out, err := m.session.Run(ctx, arrays)
		done <- result{out, err}
	}
	// A context that can't end needs no second goroutine.
	if ctx.Done() == nil {
		finish()
	} else {
		go finish()
	}
	select {
	case r := <-done:
		return r.out, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Profile runs the model so many times and returns what that took, by op, and what it took to optimize the model for
// inputs of these sizes.
func (m *Model) Profile(ctx context.Context, inputs Inputs, runs int) (*profile.Function, error) {
	arrays := make(map[string]*array.Array, len(inputs))
	if err := m.enter(ctx, arrays, inputs, true); err != nil {
		return nil, err
	}
	defer m.runs.Done()
	options := m.options
	options.Profile = true
	f, err := session.Model(ctx, m.file, options, arrays)
	if err != nil {
		return nil, err
	}
	return f.Profile(ctx, arrays, runs)
}

// Close waits for the runs that are in progress and gives the files of the model back. Outputs stay valid, but those
// of a Runner do not. Whoever uses the model later gets ErrClosed.
func (m *Model) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.runs.Wait()
	return m.file.Close()
}

// enter sets arrays to the values of inputs and begins a run.
func (m *Model) enter(ctx context.Context, arrays map[string]*array.Array, inputs Inputs, all bool) error {
	if err := m.bind(arrays, inputs, all); err != nil {
		return err
	}
	return m.begin(ctx)
}

// begin begins a run, which runs.Done ends, unless there is an error.
func (m *Model) begin(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// Under the lock that Close takes to set closed: then a run is either counted before Close waits, or
	// refused.
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	m.runs.Add(1)
	return nil
}

// A Runner runs a model for one goroutine. It reuses memory: a run with tensors of the sizes of the run before
// allocates nothing.
type Runner struct {
	m      *Model
	runner *session.SessionRunner
	arrays map[string]*array.Array
}

// NewRunner returns a Runner.
func (m *Model) NewRunner() *Runner {
	return &Runner{m, m.session.NewRunner(), make(map[string]*array.Array)}
}

// Run is like Model.Run, but the outputs, and the map, are valid only until the next Run, and when ctx ends, it returns
// after the op in progress.
func (r *Runner) Run(ctx context.Context, inputs Inputs) (Outputs, error) {
	clear(r.arrays)
	if err := r.m.enter(ctx, r.arrays, inputs, true); err != nil {
		return nil, err
	}
	defer r.m.runs.Done()
	_, out, err := r.runner.Run(ctx, r.arrays)
	return out, err
}

// A Stateful runs a model, such as a decoder, step after step: outputs of a run, the states, are inputs of the next
// one. It is for one goroutine; Fork makes another one. What it embeds says what states are, counts them and limits
// them.
type Stateful struct {
	*session.Stateful
	m *Model
}

// NewStateful returns a Stateful with the states that are given, or else those that session.FindStates finds by the
// names that exporters give them: present.0.key and past_key_values.0.key, stateN and state.
func (m *Model) NewStateful(states ...session.State) (*Stateful, error) {
	s, err := m.session.NewStateful(states...)
	if err != nil {
		return nil, err
	}
	return &Stateful{s, m}, nil
}

// Run computes the outputs for inputs that are no states, see session.Stateful: an attention_mask and position_ids need
// not be given. The outputs are valid only until the next Run, and those that are states must not be changed.
func (s *Stateful) Run(ctx context.Context, inputs Inputs) (Outputs, error) {
	arrays := make(map[string]*array.Array, len(inputs))
	if err := s.m.enter(ctx, arrays, inputs, false); err != nil {
		return nil, err
	}
	defer s.m.runs.Done()
	return s.Stateful.Run(ctx, arrays)
}

// Fork returns another Stateful that goes on from the same states. Neither changes those of the other one.
func (s *Stateful) Fork() *Stateful { return &Stateful{s.Stateful.Fork(), s.m} }
