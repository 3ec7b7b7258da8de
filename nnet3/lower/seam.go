package lower

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Emit turns the programs of the chain into the commands of one computation, as the storage of each
// says. In a program without a planned storage every value gets a matrix of its own. Matrices that
// are handed over stay where they are, but at the end of a loop they replace those that it began
// with.
func (ch *Chain) Emit() (*computation.Computation, error) {
	t := newTarget(ch.Programs[0].NeedModelDerivative)
	label := int32(-1)
	var begin map[int32]int32
	for i, p := range ch.Programs {
		if i == ch.Loop {
			label, begin = int32(len(t.c.Commands)), maps.Clone(t.carried)
			t.add(computation.NewCommand(computation.NoOperationLabel))
		}
		if _, ok := StorageOf(p.Graph); !ok {
			if _, err := PlanStorage(p); err != nil {
				return nil, fmt.Errorf("segment %d: %w", i+1, err)
			}
		}
		if err := t.program(p); err != nil {
			return nil, fmt.Errorf("segment %d: %w", i+1, err)
		}
		if p.paused {
			t.add(computation.NewCommand(computation.NoOperationMarker))
		}
	}
	if label >= 0 {
		t.closeLoop(begin)
		t.add(computation.NewCommand(computation.GotoLabel, label))
	}
	return t.c, nil
}

// comesBack reports whether one of two values is handed over to an iteration of a loop, and the
// other replaces it for the next. The two may share a matrix.
func (s *Storage) comesBack(a, b int32) bool {
	x, y := &s.values[a], &s.values[b]
	return x.carriedIn > 0 && x.carriedIn == y.carriedOut || y.carriedIn > 0 && y.carriedIn == x.carriedOut
}

// takeOver makes slot k the matrix that the previous segment left for it.
func (e *emission) takeOver(k int32, span bool) error {
	q := &e.s.slots[k]
	sub, ok := e.carried[q.carriedIn]
	if !ok {
		return fmt.Errorf("lower: no segment hands over matrix %d", q.carriedIn)
	}
	m := e.matrix(sub)
	if m.Rows != q.rows || m.Cols != q.cols {
		return fmt.Errorf("lower: matrix %d is handed over with %d rows and %d columns, and taken over with %d and %d", q.carriedIn, m.Rows, m.Cols, q.rows, q.cols)
	}
	m.StrideEqualNumCols = m.StrideEqualNumCols || span
	e.whole[k] = sub
	return nil
}

// handOver records the matrices that the program hands over.
func (e *emission) handOver() {
	e.carried = make(map[int32]int32)
	for n, port := range e.s.prog.Outputs {
		if port.seam() {
			e.carried[port.Carried] = e.operand(e.s.prog.Graph.Outputs()[n])
		}
	}
}

// move is a matrix that replaces another; both are given by sub-matrices that cover them.
type move struct{ to, from int32 }

// closeLoop lets the matrices that the loop ends with replace those that it began with. It swaps
// them, and copies only one matrix of every cycle to make room.
func (t *target) closeLoop(begin map[int32]int32) {
	var moves []move
	for _, m := range slices.Sorted(maps.Keys(begin)) {
		if to, from := begin[m], t.carried[m]; to != from {
			moves = append(moves, move{to, from})
		}
	}
	// What the iteration made must end up where the next one looks for it. Where matrices are
	// exchanged in a circle no move is first, so one of them is copied out of the way; after that
	// all moves form chains, which begin with a free destination.
	for _, cycle := range chains(moves, true) {
		last := &moves[cycle[len(cycle)-1]]
		m := t.matrix(last.from)
		room := t.c.NewMatrix(int(m.Rows), int(m.Cols), m.StrideEqualNumCols)
		t.add(computation.NewCommand(computation.AllocMatrix, room))
		t.add(computation.NewCommand(computation.MatrixCopy, room, last.from))
		t.add(computation.NewCommand(computation.DeallocMatrix, last.from))
		last.from = room
	}
	for _, chain := range chains(moves, false) {
		// Swapped matrices exchange their buffers, so both must have the same stride. The demand of
		// one is passed on along its chain.
		contiguous := slices.ContainsFunc(chain, func(k int) bool {
			return t.matrix(moves[k].to).StrideEqualNumCols || t.matrix(moves[k].from).StrideEqualNumCols
		})
		for _, k := range chain {
			t.matrix(moves[k].to).StrideEqualNumCols, t.matrix(moves[k].from).StrideEqualNumCols = contiguous, contiguous
			t.add(computation.NewCommand(computation.SwapMatrix, moves[k].to, moves[k].from))
		}
	}
}

// chains lists the numbers of moves that depend on each other, each after the one that vacates its
// destination: either those that begin with a free destination, or the cycles. Each matrix moves
// once.
func chains(moves []move, cycles bool) [][]int {
	to, from := make(map[int32]int, len(moves)), make(map[int32]int, len(moves))
	for k, a := range moves {
		to[a.to], from[a.from] = k, k
	}
	var lists [][]int
	done := make([]bool, len(moves))
	follow := func(k int) (list []int) {
		for ok := true; ok && !done[k]; k, ok = to[moves[k].from] {
			done[k] = true
			list = append(list, k)
		}
		return list
	}
	for k, a := range moves {
		if _, waits := from[a.to]; !waits {
			if list := follow(k); !cycles {
				lists = append(lists, list)
			}
		}
	}
	for k := range moves {
		if list := follow(k); cycles && len(list) > 0 {
			lists = append(lists, list)
		}
	}
	return lists
}

func (t *target) matrix(sub int32) *computation.MatrixInfo {
	return &t.c.Matrices[t.c.Submatrices[sub].Matrix]
}

// separateOutputs makes every matrix that leaves the program a value that can leave. It copies an
// output that is only part of a value, or that would have to be in two places at once. Rewrites
// would undo that, so it happens when the storage is planned.
func separateOutputs(p *Program) error {
	given := make(map[*fgraph.Variable]bool) // whether another segment hands the value over
	for i, v := range p.Graph.Inputs() {
		given[v] = p.Inputs[i].seam()
	}
	leaves := make(map[*fgraph.Variable]Port)
	// permit reports whether v itself can leave through the port, and records that it does. The
	// caller may get a value twice, but not one that the next segment gets, too, nor one that was
	// handed over, because the next iteration of a loop reuses its place.
	permit := func(v *fgraph.Variable, port Port) bool {
		root, _ := Resolve(v)
		other, again := leaves[v]
		if root != v || again && (port.seam() || other.seam()) || !port.seam() && given[v] {
			return false
		}
		leaves[v] = port
		return true
	}
	var order []int
	for i, port := range p.Outputs {
		if port.seam() {
			order = append(order, i) // first, because it may live in the matrix that the previous iteration left
		}
	}
	for i, port := range p.Outputs {
		if !port.seam() && port.IsMatrix() {
			order = append(order, i)
		}
	}
	copies := make([]*fgraph.Variable, len(p.Outputs))
	for _, i := range order {
		v, port := p.Graph.Outputs()[i], p.Outputs[i]
		if permit(v, port) {
			continue
		}
		root, r := Resolve(v)
		t := TypeOf(v)
		term := Term{Scale: 1, SrcRow: r.R0, NumRows: t.Rows, SrcCol: r.C0, NumCols: t.Cols, At: port.At}
		copies[i] = NewAssemble(t.Rows, t.Cols, []Term{term}, []*fgraph.Variable{root})
		copies[i].Owner().SetOrigin(int(port.At))
	}
	return p.ReplaceOutputs(copies, fgraph.Reason{Pass: "plan_storage", Rule: "separate_outputs"})
}
