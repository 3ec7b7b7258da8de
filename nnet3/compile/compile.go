package compile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Errors that the errors of this package wrap.
var (
	// errBadRequest means that a request contradicts the network or itself.
	errBadRequest = errors.New("bad request")
	// ErrNotComputable means that the inputs don't suffice for the outputs. See
	// *NotComputableError.
	ErrNotComputable = errors.New("not computable from the inputs")
	// ErrUnbounded means that following the dependencies of the outputs did not end.
	ErrUnbounded = errors.New("endless dependencies")
	// errCyclic means that rows depend on each other in a circle.
	errCyclic = errors.New("rows depend on each other in a circle")
)

// Options are options of a compilation. The zero value suits most callers.
type Options struct {
	// DebugInfo asks for the Cindex of every row of every matrix, in Computation.MatrixDebugInfo.
	// Printing a computation, limiting the times of derivatives and looping need it.
	DebugInfo bool
	// NoShortcut compiles sequences that are alike separately. The result is the same.
	NoShortcut bool
	// MaxCindexes bounds the rows to look at, counting one sequence if all are alike. 0 means 2¹⁹,
	// plus four times the rows given and wanted for every node, up to 2²⁷. The rows may have eight
	// dependencies each, on average, plus four times as many as the wanted rows would have if each
	// took a row of every node.
	MaxCindexes int
}

// Compile returns the commands that compute the outputs of a request from its inputs and, if the
// request asks for them, derivatives. The commands are as plain as possible: one step after the
// other, nothing shared, nothing in place. An optimizer makes them fast. Errors wrap errBadRequest,
// ErrNotComputable (as *NotComputableError), ErrUnbounded, errCyclic or nnet3.ErrNetwork.
func Compile(nn *nnet3.Nnet, req *computation.Request, opts Options) (*computation.Computation, error) {
	return CompileContext(context.Background(), nn, req, opts)
}

// CompileContext is Compile with a context. If that is done, the error wraps the cause.
func CompileContext(ctx context.Context, nn *nnet3.Nnet, req *computation.Request, opts Options) (*computation.Computation, error) {
	net, err := newNetwork(nn)
	if err != nil {
		return nil, err
	}
	return net.compile(ctx, []*computation.Request{req}, opts)
}

// Segments compiles several requests into one computation that serves them in order. Each request
// has its own inputs and may use whatever was computed for earlier ones. NoOperationMarker commands
// divide the segments. Only a single request may ask for derivatives.
func Segments(nn *nnet3.Nnet, requests []*computation.Request, opts Options) (*computation.Computation, error) {
	net, err := newNetwork(nn)
	if err != nil {
		return nil, err
	}
	return net.compile(context.Background(), requests, opts)
}

func (net *network) compile(ctx context.Context, requests []*computation.Request, opts Options) (*computation.Computation, error) {
	if len(requests) == 0 {
		return nil, fmt.Errorf("%w: no request", errBadRequest)
	}
	for i, req := range requests {
		if err := net.checkRequest(req); err != nil {
			return nil, inSegment(err, i, len(requests))
		}
		if len(requests) > 1 && wantsDerivatives(req) {
			return nil, inSegment(fmt.Errorf("%w: a request among several can't have derivatives", errBadRequest), i, len(requests))
		}
	}
	if len(requests) == 1 {
		if err := net.checkSample(ctx, requests[0]); err != nil {
			return nil, err
		}
	}
	// A minibatch of n like sequences is compiled as one, with every vertex for n rows. Whether
	// they are really alike shows only when the rows are entered, and then the slow way is taken.
	all := sequences(requests)
	if len(all) > 1 && !opts.NoShortcut && isRegular(requests, all) {
		c, err := net.compileLanes(ctx, requests, all, opts)
		if !errors.Is(err, errIrregular) {
			return c, err
		}
	}
	return net.compileLanes(ctx, requests, lanes{0}, opts)
}

// wantsDerivatives reports whether a request asks for any derivative.
func wantsDerivatives(req *computation.Request) bool {
	return req.NeedModelDerivative || slices.ContainsFunc(req.Inputs, hasDeriv) || slices.ContainsFunc(req.Outputs, hasDeriv)
}

// inSegment adds to an error which of several requests it is about.
func inSegment(err error, i, n int) error {
	if n == 1 {
		return err
	}
	return fmt.Errorf("segment %d of %d: %w", i+1, n, err)
}

// compileLanes compiles with the given lanes. It returns errIrregular if a request differs between
// them.
func (net *network) compileLanes(ctx context.Context, requests []*computation.Request, l lanes, opts Options) (*computation.Computation, error) {
	given, wanted := 0, 0
	for _, req := range requests {
		given += countRows(req.Inputs) / len(l)
		wanted += countRows(req.Outputs) / len(l)
	}
	b := newBuilder(net, len(l), newLimits(opts, given, wanted, len(net.nodes)), min(wanted/len(requests)*len(net.nodes), 1<<16)+1<<8)
	b.interrupt.ctx = ctx
	segments := make([]segment, len(requests))
	for i, req := range requests {
		if i > 0 {
			b.endSegment()
		}
		segments[i].request = req
		if err := b.buildSegment(&segments[i], l); err != nil {
			return nil, inSegment(err, i, len(requests))
		}
	}
	// The graph is complete for all segments before steps are made, because a matrix is used by
	// later segments, too.
	st := &stepper{net: net, graph: b.graph, lanes: l, phaser: phaser{net: net, graph: b.graph}, segments: segments, interrupt: &b.interrupt}
	for i := range segments {
		if err := st.addSegment(&segments[i]); err != nil {
			return nil, inSegment(err, i, len(requests))
		}
	}
	e := &emitter{stepper: st}
	if err := e.emit(opts.DebugInfo); err != nil {
		return nil, err
	}
	return e.comp, nil
}

// buildSegment adds a segment to the graph and finds the vertices that its outputs are computed
// from, including themselves but not those of earlier segments. All outputs must be computable.
func (b *builder) buildSegment(s *segment, l lanes) error {
	b.bounds.add(s.request)
	var err error
	if s.inputs, err = b.addAll(s.request.Inputs, l, b.addInput); err != nil {
		return err
	}
	if s.outputs, err = b.addAll(s.request.Outputs, l, b.addOutput); err != nil {
		return err
	}
	if err := b.build(); err != nil {
		return err
	}
	var wanted []int32
	failed := false
	for i := range s.outputs {
		wanted = append(wanted, s.outputs[i].rows.vertices...)
	}
	for _, v := range wanted {
		failed = failed || b.graph.vertices[v].status != computable
	}
	if failed {
		return b.explain(s.inputs, s.outputs)
	}
	s.needed = b.prune(wanted)
	return b.interrupt.err
}
