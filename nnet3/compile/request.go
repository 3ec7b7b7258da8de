package compile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/fileio/spell"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// ioRows is an input or an output of a segment.
type ioRows struct {
	spec *computation.IoSpecification
	node int32
	rows rows
}

// checkRequest checks a request, except for whether its outputs are computable.
func (net *network) checkRequest(req *computation.Request) error {
	if req == nil {
		return fmt.Errorf("%w: no request", errBadRequest)
	}
	if len(req.Outputs) == 0 {
		return fmt.Errorf("%w: no outputs are asked for", errBadRequest)
	}
	seen := make(map[string]bool, len(req.Inputs)+len(req.Outputs))
	check := func(specs []computation.IoSpecification, what string, valid func(n *node) bool) error {
		for i := range specs {
			spec := &specs[i]
			i := net.nn.NodeIndex(spec.Name)
			switch {
			case i < 0:
				return fmt.Errorf("%w: the network has no node %q%s", errBadRequest, fileio.Excerpt(spec.Name, 0), net.suggest(spec.Name, valid))
			case !valid(&net.nodes[i]):
				return fmt.Errorf("%w: node %q can't be an %s%s", errBadRequest, fileio.Excerpt(spec.Name, 0), what, net.suggest(spec.Name, valid))
			case seen[spec.Name]:
				return fmt.Errorf("%w: %q is named twice", errBadRequest, fileio.Excerpt(spec.Name, 0))
			case len(spec.Indexes) == 0:
				return fmt.Errorf("%w: %s %q has no indexes", errBadRequest, what, fileio.Excerpt(spec.Name, 0))
			}
			seen[spec.Name] = true
			for _, ix := range spec.Indexes {
				if ix.T == index.NoTime {
					return fmt.Errorf("%w: %s %q has an index without time, %v", errBadRequest, what, fileio.Excerpt(spec.Name, 0), ix)
				}
			}
		}
		return nil
	}
	if err := check(req.Inputs, "input", func(n *node) bool { return n.kind == inputNode || n.isComponent() }); err != nil {
		return err
	}
	if err := check(req.Outputs, "output", func(n *node) bool { return n.kind == outputNode }); err != nil {
		return err
	}
	wanted := req.NeedModelDerivative || slices.ContainsFunc(req.Inputs, hasDeriv)
	if wanted && !slices.ContainsFunc(req.Outputs, hasDeriv) {
		return fmt.Errorf("%w: derivatives are asked for, but no output has one to start from (HasDeriv)", errBadRequest)
	}
	return nil
}

func hasDeriv(s computation.IoSpecification) bool { return s.HasDeriv }

// suggest returns a hint at the valid node with the most similar name, if there is one.
func (net *network) suggest(name string, valid func(n *node) bool) string {
	var names []string
	for i := range net.nodes {
		if n := &net.nodes[i]; valid(n) {
			names = append(names, net.name(int32(i)))
		}
	}
	if near := spell.Nearest(name, names); near != "" && near != name {
		return fmt.Sprintf("; is %q meant?", near)
	}
	return ""
}

// sequences returns the values of n in the requests, in ascending order.
func sequences(requests []*computation.Request) lanes {
	var all lanes
	for _, req := range requests {
		for _, specs := range [...][]computation.IoSpecification{req.Inputs, req.Outputs} {
			for i := range specs {
				for k, ix := range specs[i].Indexes {
					if k == 0 || ix.N != specs[i].Indexes[k-1].N {
						all = append(all, ix.N)
					}
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isRegular reports whether the requests may be alike for all sequences, judging by numbers of
// rows. addRows checks exactly.
func isRegular(requests []*computation.Request, l lanes) bool {
	uneven := func(s computation.IoSpecification) bool { return len(s.Indexes)%len(l) != 0 }
	for _, req := range requests {
		if slices.ContainsFunc(req.Inputs, uneven) || slices.ContainsFunc(req.Outputs, uneven) {
			return false
		}
	}
	return true
}

// errIrregular means that the sequences of a request differ and can't be lanes.
var errIrregular = fmt.Errorf("%w: sequences differ", errBadRequest)

// addAll adds inputs or outputs to the graph.
func (b *builder) addAll(specs []computation.IoSpecification, l lanes, enter func(int32, index.Index) (int32, bool)) ([]ioRows, error) {
	io := make([]ioRows, len(specs))
	for i := range specs {
		node := int32(b.net.nn.NodeIndex(specs[i].Name))
		r, err := b.addRows(specs[i].Indexes, node, l, enter)
		if err != nil {
			return nil, fmt.Errorf("%w, in %q", err, specs[i].Name)
		}
		io[i] = ioRows{spec: &specs[i], node: node, rows: r}
	}
	return io, nil
}

// addRows adds the vertices for the rows of an input or output.
func (b *builder) addRows(indexes []index.Index, node int32, l lanes, enter func(int32, index.Index) (int32, bool)) (rows, error) {
	if len(l) == 1 {
		vertices := make([]int32, len(indexes))
		for i, ix := range indexes {
			v, isNew := enter(node, ix)
			if !isNew {
				return rows{}, fmt.Errorf("%w: index %v is given or wanted already", errBadRequest, ix)
			}
			vertices[i] = v
		}
		return inOrder(vertices, 1), nil
	}
	order := slices.Repeat([]int32{none}, len(indexes))
	vertices := make([]int32, 0, len(indexes)/len(l))
	lane := 0
	for row, ix := range indexes {
		if l[lane] != ix.N {
			lane, _ = slices.BinarySearch(l, ix.N)
		}
		// All lanes share the vertices of the first one. The row of each lane is recorded in order.
		ix.N = l[0]
		v, isNew := enter(node, ix)
		b.position = extend(b.position, int(v))
		i := b.position[v]
		if isNew {
			i = int32(len(vertices))
			b.position[v] = i
			vertices = append(vertices, v)
		}
		k := int(i)*len(l) + lane
		// Each vertex has one row in each lane: as many places as rows, and none taken twice.
		if int(i) >= len(vertices) || vertices[i] != v || k >= len(order) || order[k] != none {
			return rows{}, errIrregular
		}
		order[k] = int32(row)
	}
	return withOrder(vertices, order), nil
}

// extend returns s, longer where it must be so that s[i] exists.
func extend(s []int32, i int) []int32 {
	if i < len(s) {
		return s
	}
	return append(s, make([]int32, i+1-len(s)+len(s)/2)...)
}

// Bounds of a sample. Smaller requests than largeRequest, in outputs times nodes, take less than a
// gigabyte and are told all that they lack. A graph of sampleRows rows takes some milliseconds.
const (
	largeRequest  = 1 << 22
	sampleOutputs = 9
	sampleRows    = 1 << 16
)

// checkSample tries a few rows of each output of a request that may need a very large graph, and
// returns why one can't be computed. It returns nil if they can be, if it does not find out at
// little cost, or if the request is small.
func (net *network) checkSample(ctx context.Context, req *computation.Request) error {
	if countRows(req.Outputs)*len(net.nodes) <= largeRequest {
		return nil
	}
	// The builder goes from all outputs backward, hop by hop. If the inputs don't suffice, it finds
	// out at the last hop, with a row of every node for every output in memory: a request of a line
	// would take gigabytes before it is refused. Inputs that are too short or have gaps fail almost
	// all outputs alike, so a few tell. Sequences don't depend on each other, so one is enough.
	n := req.Outputs[0].Indexes[0].N
	small := &computation.Request{
		Inputs:  filterRows(req.Inputs, func(ix index.Index) bool { return ix.N == n }),
		Outputs: filterRows(req.Outputs, func(ix index.Index) bool { return ix.N == n }),
	}
	for i := range small.Outputs {
		o := &small.Outputs[i]
		if rows := o.Indexes; len(rows) > sampleOutputs {
			o.Indexes = make([]index.Index, sampleOutputs)
			for k := range o.Indexes {
				o.Indexes[k] = rows[k*(len(rows)-1)/(sampleOutputs-1)]
			}
		}
	}
	b := newBuilder(net, 1, newLimits(Options{MaxCindexes: countRows(small.Inputs) + sampleRows}, 0, 0, len(net.nodes)), 1<<8)
	b.interrupt.ctx = ctx
	var missing *NotComputableError
	if err := b.buildSegment(&segment{request: small}, lanes{0}); !errors.As(err, &missing) {
		return nil // any other fault is found again, and reported for the whole request
	}
	missing.sampled = true
	for i := range missing.outputs {
		missing.outputs[i].of = len(req.Output(missing.outputs[i].Node).Indexes)
	}
	for i := range missing.Inputs {
		if in := &missing.Inputs[i]; in.of > 0 {
			in.of = len(req.Input(in.Node).Indexes)
		}
	}
	return missing
}

// filterRows returns the inputs or outputs with the rows for which keep is true.
func filterRows(specs []computation.IoSpecification, keep func(index.Index) bool) []computation.IoSpecification {
	var kept []computation.IoSpecification
	for _, s := range specs {
		var rows []index.Index
		for _, ix := range s.Indexes {
			if keep(ix) {
				rows = append(rows, ix)
			}
		}
		if s.Indexes = rows; len(rows) > 0 {
			kept = append(kept, s)
		}
	}
	return kept
}
