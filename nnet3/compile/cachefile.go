package compile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// cacheVersion is the version of the file format.
const cacheVersion = 1

// ErrStaleCache means that a saved cache is useless to a Compiler, because it was written for
// another network or with other options. Nothing was read from it.
var ErrStaleCache = errors.New("saved cache doesn't fit")

// WriteCache saves the kept requests and computations, the most recently used at the end.
// Computations are in Kaldi's format (computation.Write). A computation with derived components, as
// made by fusion, can't be written; its request stands alone, and ReadCache compiles it again.
// Other goroutines may compile meanwhile. The error is the writer's.
func (c *Compiler) WriteCache(w *kaldiio.Writer) error {
	entries := c.finished()
	w.Token("<CompilerCache>")
	w.Token("<Version>")
	w.Int32(cacheVersion)
	w.Token("<Network>")
	w.Uint64(c.net.fingerprint())
	w.Token("<Options>")
	w.Uint64(c.opts.fingerprint())
	w.Token("<NumEntries>")
	w.Uint64(uint64(len(entries)))
	w.Newline()
	for _, e := range entries {
		e.req.Write(w)
		whole := len(e.comp.Derived) == 0
		w.Token("<HasComputation>")
		w.Bool(whole)
		w.Newline()
		if whole {
			if err := e.comp.Write(w); err != nil {
				return err
			}
		}
	}
	w.Token("</CompilerCache>")
	w.Newline()
	return w.Err()
}

// finished returns the compiled entries, the most recently used at the end.
func (c *Compiler) finished() []*cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	var entries []*cached
	for e := c.recent.Back(); e != nil; e = e.Prev() {
		entry := e.Value.(*cached)
		select {
		case <-entry.done:
			if entry.err == nil {
				entries = append(entries, entry)
			}
		default: // still being compiled
		}
	}
	return entries
}

// ReadCache reads what WriteCache saved and returns how many requests it added: as many as the
// capacity allows, from the end of the file. Requests that are kept already stay. Every computation
// is checked against the network.
//
// The error wraps ErrStaleCache if the file was written for another network (its weights don't
// matter) or with other options. It is a *kaldiio.Error if the file is damaged. Then nothing was
// added.
func (c *Compiler) ReadCache(r *kaldiio.Reader) (int, error) {
	if err := c.expectHeader(r); err != nil {
		return 0, err
	}
	n, err := r.Uint64()
	if err != nil {
		return 0, err
	}
	info := computation.NewNetworkInfo(c.net.nn, nil)
	var entries []*cached
	for range n {
		entry, err := c.readEntry(r, info)
		if err != nil {
			return 0, err
		}
		if entries = append(entries, entry); len(entries) > 2*c.opts.capacity() { // don't collect what won't be kept
			entries = append(entries[:0], entries[len(entries)-c.opts.capacity():]...)
		}
	}
	if err := r.Expect("</CompilerCache>"); err != nil {
		return 0, err
	}
	entries = entries[max(0, len(entries)-c.opts.capacity()):]
	for i, entry := range entries {
		if entry.comp == nil {
			if _, err := c.Compile(entry.req); err != nil {
				return i, fmt.Errorf("%s: request %d, which comes without its computation: %w", r.Name(), i+1, err)
			}
			continue
		}
		c.mu.Lock()
		if c.lookUp(entry.hash, entry.req) == nil {
			c.add(entry)
		}
		c.mu.Unlock()
	}
	return len(entries), nil
}

// expectHeader reads everything before the number of entries.
func (c *Compiler) expectHeader(r *kaldiio.Reader) error {
	if err := r.Expect("<CompilerCache>", "<Version>"); err != nil {
		return err
	}
	version, err := r.Int32()
	if err != nil {
		return err
	}
	if version != cacheVersion {
		return fmt.Errorf("%s: %w: version %d of the format, want %d", r.Name(), ErrStaleCache, version, cacheVersion)
	}
	for _, part := range [...]struct {
		token, what string
		want        uint64
	}{{"<Network>", "for another network", c.net.fingerprint()}, {"<Options>", "with other options", c.opts.fingerprint()}} {
		if err := r.Expect(part.token); err != nil {
			return err
		}
		got, err := r.Uint64()
		if err != nil {
			return err
		}
		if got != part.want {
			return fmt.Errorf("%s: %w: it was written %s; compile anew and write it again", r.Name(), ErrStaleCache, part.what)
		}
	}
	return r.Expect("<NumEntries>")
}

// readEntry reads a request and its computation, nil if the file has none.
func (c *Compiler) readEntry(r *kaldiio.Reader, info *computation.NetworkInfo) (*cached, error) {
	req, err := computation.ReadRequest(r)
	if err != nil {
		return nil, err
	}
	if err := c.net.checkRequest(req); err != nil {
		return nil, fmt.Errorf("%w: %w", r.Errorf("a request that the network can't serve"), err)
	}
	if err := r.Expect("<HasComputation>"); err != nil {
		return nil, err
	}
	entry := &cached{hash: req.Hash(), req: req, done: make(chan struct{})}
	close(entry.done)
	if whole, err := r.Bool(); err != nil || !whole {
		return entry, err
	}
	if entry.comp, err = computation.Read(r); err != nil {
		return nil, err
	}
	if err := computation.Check(entry.comp, info, computation.CheckOptions{AllowUnused: true}); err != nil {
		return nil, fmt.Errorf("%w: %w", r.Errorf("a computation that the network can't run"), err)
	}
	if !c.net.serves(entry.comp, req) {
		return nil, r.Errorf("a computation does not have the inputs and outputs of its request")
	}
	data, err := entry.comp.Precomputed(c.net.nn)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", r.Errorf("precomputed indexes that don't fit the network"), err)
	}
	for i, d := range data {
		entry.comp.PrecomputedIndexes[i].Data = d
	}
	return entry, nil
}

// serves reports whether a computation has the inputs and outputs of a request, with as many rows.
func (net *network) serves(c *computation.Computation, req *computation.Request) bool {
	type end struct {
		command computation.CommandType
		node    int32
	}
	rows := map[end]int{}
	for i := range c.Commands {
		if cmd := &c.Commands[i]; cmd.Type == computation.AcceptInput || cmd.Type == computation.ProvideOutput {
			rows[end{cmd.Type, cmd.Node()}] = int(c.Submatrices[cmd.View()].NumRows)
		}
	}
	has := func(specs []computation.IoSpecification, value, deriv computation.CommandType) bool {
		for i := range specs {
			s := &specs[i]
			node := int32(net.nn.NodeIndex(s.Name))
			if rows[end{value, node}] != len(s.Indexes) || s.HasDeriv && rows[end{deriv, node}] != len(s.Indexes) {
				return false
			}
		}
		return true
	}
	return has(req.Inputs, computation.AcceptInput, computation.ProvideOutput) &&
		has(req.Outputs, computation.ProvideOutput, computation.AcceptInput) && c.NeedModelDerivative == req.NeedModelDerivative
}

// fingerprint hashes the options that computations depend on.
func (o *CompilerOptions) fingerprint() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%t %t %t %s", o.DebugInfo, o.NoShortcut, o.Optimize != nil, o.OptimizeName)
	return h.Sum64()
}

// fingerprint hashes everything about the network that computations depend on: nodes, and the
// properties and dependencies of components, but neither their parameters nor their statistics.
func (net *network) fingerprint() uint64 {
	h := fnv.New64a()
	for i := range net.nodes {
		fmt.Fprintln(h, net.nn.ConfigLine(i))
		n := &net.nodes[i]
		if !n.isComponent() {
			continue
		}
		c := net.nn.Components[n.component]
		fmt.Fprintln(h, n.component, c.Type(), c.InputDim(), c.OutputDim(), int(n.properties), n.trainable)
		if n.kind == generalNode {
			n.hashDependencies(h)
		}
	}
	return h.Sum64()
}

// hashDependencies writes which rows a component depends on at some times, and which it must have.
func (n *node) hashDependencies(w io.Writer) {
	for t := int32(-1); t <= 3; t++ {
		out := index.Index{T: t}
		in := n.general.InputIndexes(out, nil)
		for i := 0; i < len(in); i += 1 + len(in)/256 {
			x := in[i]
			without := n.general.IsComputable(out, func(y index.Index) bool { return y != x }, nil)
			alone := n.general.IsComputable(out, func(y index.Index) bool { return y == x }, nil)
			binary.Write(w, binary.LittleEndian, [...]int32{x.N, x.T, x.X})
			fmt.Fprint(w, without, alone)
		}
		fmt.Fprintln(w, len(in))
	}
}
