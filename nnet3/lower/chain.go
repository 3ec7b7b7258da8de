package lower

import (
	"fmt"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// A Chain is a computation as values, with a program for each segment. Segments end at markers,
// where a run stops so that the caller can take outputs and hand in inputs. A computation with one
// segment, or with a backward part, is a chain of one program.
//
// Each program is rewritten by itself. The matrices that it takes over from the previous one and
// hands over to the next are among its inputs and outputs (Port.Carried). Since a rewrite sees only
// one segment, it can't make an output of one wait for an input of the next.
type Chain struct {
	Programs []*Program // in the order in which they run
	// Loop is the number of the program that the loop of a looped computation begins with; it
	// follows the last one. It is -1 without a loop.
	Loop int
}

// LowerChain turns each segment of a computation into values, as Lower does.
func LowerChain(c *computation.Computation, net Network) (*Chain, error) {
	segments, loop, err := cutSegments(c)
	if err != nil {
		return nil, err
	}
	ch := &Chain{Loop: loop}
	live := liveMatrices(c, segments, loop)
	for i, s := range segments {
		if i > 0 {
			s.carriedIn = ch.Programs[i-1].carriedOut()
		}
		s.wanted = live[i+1]
		// The program that a loop begins with has two predecessors, which must hand over the same
		// matrices, written or not.
		s.unwritten = loop >= 0 && (i+1 == loop || i+1 == len(segments))
		p, err := lowerSegment(c, net, s)
		if err != nil {
			return nil, err
		}
		p.loops = i == loop
		ch.Programs = append(ch.Programs, p)
	}
	if loop == 0 && len(ch.Programs[len(segments)-1].carriedOut()) > 0 {
		return nil, fmt.Errorf("%w: the loop uses matrices that nothing makes before it", errUnsupported)
	}
	return ch, nil
}

// A segment is a part of a computation that is lowered by itself.
type segment struct {
	first, last int  // its commands, the last one excluded
	marker      bool // command last is a marker

	carriedIn []int32 // the matrices that it takes over
	wanted    []bool  // by matrix: whether a later segment may read it
	unwritten bool    // hand over wanted matrices even if they were never written, because another segment may have written them
}

// cutSegments returns the segments of a computation, and the number of the one that a loop begins
// with, -1 for no loop. A single marker, as between the forward and the backward part, divides
// nothing.
func cutSegments(c *computation.Computation) (segments []segment, loop int, err error) {
	n, label, markers, backward := len(c.Commands), -1, 0, false
	for i := range c.Commands {
		switch cmd := &c.Commands[i]; {
		case cmd.Type == computation.NoOperationMarker:
			markers++
		case cmd.Type.IsBackprop():
			backward = true
		case cmd.Type == computation.GotoLabel:
			if i+1 != n || cmd.Target() < 0 || int(cmd.Target()) >= i || c.Commands[cmd.Target()].Type != computation.NoOperationLabel {
				return nil, 0, fmt.Errorf("%w: command %d is a jump from elsewhere than the end, or not to a label", errUnsupported, i)
			}
			label, n = int(cmd.Target()), i
		}
	}
	if label < 0 && markers <= 1 {
		return []segment{{last: n}}, -1, nil
	}
	// A backward part reads values of the forward part across all markers between them, and a
	// program's ports would have to carry all of them.
	if backward {
		return nil, 0, fmt.Errorf("%w: a backward part among several segments", errUnsupported)
	}
	loop, first := -1, 0
	for i := range n {
		switch {
		case c.Commands[i].Type == computation.NoOperationMarker:
			segments = append(segments, segment{first: first, last: i, marker: true})
			first = i + 1
		case i == label:
			if first < i {
				segments = append(segments, segment{first: first, last: i})
			}
			loop, first = len(segments), i+1
		}
	}
	if first < n || loop == len(segments) {
		segments = append(segments, segment{first: first, last: n})
	}
	return segments, loop, nil
}

// liveMatrices returns, for the beginning of each segment and for the end, which matrices are live.
// Allocation kills a matrix. What is live where a loop begins is live at its end.
func liveMatrices(c *computation.Computation, segments []segment, loop int) [][]bool {
	live := make([][]bool, len(segments)+1)
	for i := range live {
		live[i] = make([]bool, len(c.Matrices))
	}
	// Liveness by backward data flow. Without a loop one round is exact; with one, what is live at
	// the label flows to the end of the last segment, which may make more live at the label. Sets
	// only grow, so it ends, in practice after two rounds.
	for again := true; again; {
		again = false
		for i := len(segments) - 1; i >= 0; i-- {
			copy(live[i], live[i+1])
			liveBefore(c, segments[i], live[i])
		}
		if loop >= 0 {
			for m, needed := range live[loop] {
				if needed && !live[len(segments)][m] {
					live[len(segments)][m], again = true, true
				}
			}
		}
	}
	return live
}

// liveBefore turns the matrices that are live after a segment into those that are live before it.
func liveBefore(c *computation.Computation, s segment, live []bool) {
	matrix := func(sub int32) int32 { return c.Submatrices[sub].Matrix }
	for i := s.last - 1; i >= s.first; i-- {
		cmd := &c.Commands[i]
		switch cmd.Type {
		case computation.AllocMatrix, computation.DeallocMatrix, computation.AcceptInput:
			live[matrix(cmd.View())] = false
			continue
		case computation.SwapMatrix:
			a, b := matrix(cmd.View()), matrix(cmd.Source())
			live[a], live[b] = live[b], live[a]
			continue
		case computation.SetConst:
			if c.IsWhole(cmd.View()) {
				live[matrix(cmd.View())] = false
				continue
			}
		case computation.CopyRowsMulti, computation.AddRowsMulti, computation.CopyToRowsMulti, computation.AddToRowsMulti:
			for _, p := range c.IndexesMulti[cmd.Vector()] {
				if p[0] > 0 {
					live[matrix(p[0])] = true
				}
			}
		}
		for arg := range cmd.Submatrices {
			live[matrix(*arg)] = true
		}
	}
}

// carryOut hands over the matrices that later segments want, except empty ones: they stay zero.
func (l *lowering) carryOut(s *segment) {
	for m, wanted := range s.wanted {
		if wanted && (s.unwritten || !l.pieces.empty(int32(m))) {
			l.outputs = append(l.outputs, l.readRect(int32(m), l.whole(int32(m))))
			l.prog.Outputs = append(l.prog.Outputs, Port{Node: -1, Component: -1, Carried: int32(m), At: l.at})
		}
	}
}

// carriedOut returns the matrices that the program hands over, ascending.
func (p *Program) carriedOut() []int32 {
	var list []int32
	for _, port := range p.Outputs {
		if port.Carried > 0 {
			list = append(list, port.Carried)
		}
	}
	return list
}
