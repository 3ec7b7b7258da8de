package compile

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// futureStates bounds the nodes, times the residues of time, that checkFuture tells apart.
const futureStates = 1 << 12

// A lookup says that a state depends on another one, some frames later.
type lookup struct {
	from, to int32
	later    int
}

// checkFuture returns an error if the outputs of a request depend on a recurrence that goes on into the future, such
// as the backward half of a bidirectional LSTM. A chunk can't know it, and IfDefined would just leave it out.
func (net *network) checkFuture(req *computation.Request) error {
	needed := make([]bool, len(net.nodes))
	var todo []int32
	for i := range req.Outputs {
		if n := net.nn.NodeIndex(req.Outputs[i].Name); n >= 0 {
			todo = append(todo, int32(n))
		}
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !needed[n] {
			needed[n] = true
			todo = net.nodes[n].sources(todo)
		}
	}
	for i := range net.epochs {
		// All nodes of an epoch depend on each other.
		if ep := &net.epochs[i]; ep.recurrent && needed[ep.nodes[0]] {
			if node, later := net.futureOf(ep); later > 0 {
				return fmt.Errorf("%w: rows of node %q depend on rows %d frames later, and so on all of the future, which a chunk doesn't know",
					ErrUnbounded, net.name(node), later)
			}
		}
	}
	return nil
}

// futureOf returns a node that depends on itself at a later time, and how many frames later; 0 if there is none.
func (net *network) futureOf(ep *epoch) (node int32, later int) {
	// A node may do other things at other times modulo the modulus. Beyond a limit these are mixed, as if each could
	// follow each.
	modulus := min(net.nn.Modulus(), lastWindow)
	residues := modulus
	if len(ep.nodes)*modulus > futureStates {
		residues = 1
	}
	at := make(map[int32]int32, len(ep.nodes)) // of nodes in the epoch
	for k, n := range ep.nodes {
		at[n] = int32(k * residues)
	}
	var lookups []lookup
	for _, n := range ep.nodes {
		for t := range modulus {
			net.eachSource(n, t, modulus, func(source int32, later int) {
				if to, ok := at[source]; ok {
					r := ((t+later)%residues + residues) % residues
					lookups = append(lookups, lookup{at[n] + int32(t%residues), to + int32(r), later})
				}
			})
		}
	}
	// The latest time that a state leads to is that of at most as many lookups as there are states, unless a cycle of
	// lookups leads on and on.
	states := len(ep.nodes) * residues
	latest, before := make([]int, states), make([]int, states)
	for round := 0; round <= states; round++ {
		changed := -1
		for i, s := range lookups {
			if v := latest[s.from] + s.later; v > latest[s.to] {
				latest[s.to], before[s.to], changed = v, i, int(s.to)
			}
		}
		if changed < 0 {
			return 0, 0
		}
		if round < states {
			continue
		}
		// That many lookups back it is on the cycle.
		for range states {
			changed = int(lookups[before[changed]].from)
		}
		first, cycle := changed, []int32(nil)
		for len(cycle) == 0 || changed != first {
			s := lookups[before[changed]]
			cycle, later, changed = append(cycle, ep.nodes[int(s.from)/residues]), later+s.later, int(s.from)
		}
		slices.Sort(cycle)
		for _, n := range cycle {
			if net.nodes[n].kind != hiddenNode {
				return n, later
			}
		}
	}
	return 0, 0
}

// CheckFuture returns an error if the outputs of a simple network, every step frames, use frames of the future that the
// chunks of a looped computation do not have. Such a network can be looped, as in Kaldi, but its scores depend on the
// size of chunks. One that depends on all of the future can't be, and compiling says so.
func CheckFuture(nn *nnet3.Nnet, step int) error {
	_, right, err := Context(nn)
	if err != nil {
		return nil
	}
	// The frames up to the next output belong to the chunk.
	known := right + max(step, 1) - 1
	if ahead, err := lookahead(nn, step); err == nil && ahead > known {
		return fmt.Errorf("outputs use up to %d frames of the future where they are there; the last ones of a chunk have %d, so scores depend on the size of chunks, as Kaldi's do", ahead, known)
	}
	return nil
}

// lookahead returns how many frames after the time of an output a simple network uses where they are there, for outputs
// at multiples of step. Context counts only those that it needs. The others, such as those of an IfDefined or of an
// attention that does not require all its inputs, are missing at the end of each chunk of a looped computation. It is 0
// for networks that are too large to tell, and an error if it is all of the future.
func lookahead(nn *nnet3.Nnet, step int) (frames int, err error) {
	if err := CheckSimple(nn); err != nil {
		return 0, err
	}
	net, err := newNetwork(nn)
	if err != nil {
		return 0, err
	}
	if err := net.checkFuture(&computation.Request{Outputs: []computation.IoSpecification{{Name: outputName}}}); err != nil {
		return 0, err
	}
	modulus := min(nn.Modulus(), lastWindow)
	if len(net.nodes)*modulus > futureStates {
		return 0, nil
	}
	const unused = math.MinInt
	latest := slices.Repeat([]int{unused}, len(net.nodes)*modulus) // of a node, at a time modulo modulus
	for k := range modulus {
		latest[nn.NodeIndex(outputName)*modulus+k*max(step, 1)%modulus] = 0
	}
	// From outputs to inputs. Within an epoch the latest times come to an end, as no recurrence leads on and on.
	for _, ep := range slices.Backward(net.epochs) {
		for changed := true; changed; {
			changed = false
			for _, n := range ep.nodes {
				for t, at := range latest[int(n)*modulus:][:modulus] {
					if at == unused {
						continue
					}
					net.eachSource(n, t, modulus, func(source int32, later int) {
						if to := &latest[int(source)*modulus+((t+later)%modulus+modulus)%modulus]; at+later > *to {
							*to, changed = at+later, ep.recurrent
						}
					})
				}
			}
		}
	}
	return max(0, slices.Max(latest[nn.NodeIndex(inputName)*modulus:][:modulus])), nil
}

// eachSource calls do for each row that a row of a node at a time depends on, with how many frames later it is. Rows at
// fixed times are left out.
func (net *network) eachSource(node int32, t, modulus int, do func(source int32, later int)) {
	n := &net.nodes[node]
	ix, next := index.Index{T: int32(t)}, index.Index{T: int32(t + modulus)}
	switch n.kind {
	case rangeNode:
		do(n.source, 0)
	case generalNode:
		for _, in := range n.general.InputIndexes(ix, nil) {
			do(n.source, int(in.T)-t)
		}
	case outputNode, hiddenNode, simpleNode:
		for i := range n.terms.leaves {
			source, in := n.terms.resolve(&n.terms.leaves[i], ix)
			if _, moved := n.terms.resolve(&n.terms.leaves[i], next); moved.T != in.T {
				do(source, int(in.T)-t)
			}
		}
	}
}
