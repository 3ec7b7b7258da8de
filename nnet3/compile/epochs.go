package compile

import "slices"

// epoch is a strongly connected component of the graph of nodes: nodes that are computed together,
// after those of earlier epochs.
type epoch struct {
	nodes []int32 // ascending
	// recurrent says that the nodes depend on each other, or one on itself, at other times.
	recurrent bool
}

// findEpochs returns the strongly connected components of the nodes, each after those that it
// depends on. It is Tarjan's algorithm without recursion. If the dependencies leave a choice the
// order is Kaldi's: the algorithm goes from nodes to users and reverses the components.
func findEpochs(nodes []node) []epoch {
	users := make([][]int32, len(nodes))
	for v := range nodes {
		for _, w := range nodes[v].sources(nil) {
			// A descriptor may name a node several times. v ascends, so a repetition is the last
			// one.
			if n := len(users[w]); n == 0 || users[w][n-1] != int32(v) {
				users[w] = append(users[w], int32(v))
			}
		}
	}
	var (
		order   = make([]int32, len(nodes)) // 1, 2, … as nodes are found; 0 before
		low     = make([]int32, len(nodes)) // the earliest reachable node on the stack
		onStack = make([]bool, len(nodes))
		stack   []int32
		epochs  []epoch
		count   int32
	)
	type frame struct {
		node  int32
		users []int32 // still to visit
	}
	var frames []frame
	enter := func(v int32) {
		count++
		order[v], low[v] = count, count
		stack, onStack[v] = append(stack, v), true
		frames = append(frames, frame{v, users[v]})
	}
	for root := range nodes {
		if order[root] != 0 {
			continue
		}
		enter(int32(root))
		for len(frames) > 0 {
			// Each frame is a call of the recursive algorithm; users are what its loop has still to
			// visit.
			f := &frames[len(frames)-1]
			v := f.node
			if len(f.users) > 0 {
				w := f.users[0]
				f.users = f.users[1:]
				if order[w] == 0 {
					enter(w)
				} else if onStack[w] {
					low[v] = min(low[v], order[w])
				}
				continue
			}
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				parent := frames[len(frames)-1].node
				low[parent] = min(low[parent], low[v])
			}
			// Nothing that v reaches leads further back than v, so v is the root of its component,
			// and the nodes above it on the stack are the rest of it.
			if low[v] == order[v] {
				var e epoch
				e, stack = popEpoch(nodes, stack, onStack, v)
				epochs = append(epochs, e)
			}
		}
	}
	slices.Reverse(epochs)
	return epochs
}

// popEpoch takes the nodes down to root off the stack.
func popEpoch(nodes []node, stack []int32, onStack []bool, root int32) (epoch, []int32) {
	i := len(stack) - 1
	for stack[i] != root {
		i--
	}
	e := epoch{nodes: slices.Clone(stack[i:])}
	for _, v := range e.nodes {
		onStack[v] = false
	}
	slices.Sort(e.nodes)
	e.recurrent = len(e.nodes) > 1 || slices.Contains(nodes[root].sources(nil), root)
	return e, stack[:i]
}
