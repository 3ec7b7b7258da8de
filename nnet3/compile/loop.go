package compile

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// lifetime says which commands use a matrix, not counting its allocation, the zeroing right after
// it, and its deallocation.
type lifetime struct {
	first, last int // numbers of commands; last is -1 if there is no use
	accepted    bool
	provided    bool
}

// lifetimes returns the lifetime of each matrix of a computation that was just compiled.
func lifetimes(c *computation.Computation) []lifetime {
	lives := make([]lifetime, len(c.Matrices))
	for m := range lives {
		lives[m] = lifetime{first: len(c.Commands), last: -1}
	}
	for i := range c.Commands {
		if isSizing(c, i) {
			continue
		}
		t := c.Commands[i].Type
		eachUse(c, i, func(sub int32) {
			l := &lives[c.Submatrices[sub].Matrix]
			l.first, l.last = min(l.first, i), max(l.last, i)
			l.accepted = l.accepted || t == computation.AcceptInput
			l.provided = l.provided || t == computation.ProvideOutput
		})
	}
	return lives
}

// eachUse calls use for every sub-matrix that command i names, as often as it does.
func eachUse(c *computation.Computation, i int, use func(sub int32)) {
	cmd := &c.Commands[i]
	for arg := range cmd.Submatrices {
		use(*arg)
	}
	if cmd.Type.IsMulti() {
		for _, at := range c.IndexesMulti[cmd.Vector()] {
			if at[0] > 0 {
				use(at[0])
			}
		}
	}
}

// isSizing reports whether command i allocates or frees a matrix, or zeroes one just allocated.
func isSizing(c *computation.Computation, i int) bool {
	switch c.Commands[i].Type {
	case computation.AllocMatrix, computation.DeallocMatrix:
		return true
	case computation.SetConst:
		return i > 0 && c.Commands[i-1].Type == computation.AllocMatrix && c.Commands[i-1].View() == c.Commands[i].View()
	}
	return false
}

// wholeSubmatrices returns for each matrix the first sub-matrix that covers it.
func wholeSubmatrices(c *computation.Computation) []int32 {
	wholes := make([]int32, len(c.Matrices))
	for s := len(c.Submatrices) - 1; s > 0; s-- {
		if c.IsWhole(int32(s)) {
			wholes[c.Submatrices[s].Matrix] = int32(s)
		}
	}
	return wholes
}

// moveSizing allocates and zeroes each matrix right before its first use, frees it right after its
// last one, and drops unused matrices. It returns the new commands and the positions of the
// permanent no-ops among them.
func moveSizing(c *computation.Computation, lives []lifetime) (commands []computation.Command, splices []int) {
	wholes := wholeSubmatrices(c)
	starts, ends := make([][]int32, len(c.Commands)), make([][]int32, len(c.Commands))
	for m := 1; m < len(lives); m++ {
		l := &lives[m]
		if l.last < 0 {
			continue
		}
		if !l.accepted {
			starts[l.first] = append(starts[l.first], wholes[m])
		}
		if !l.provided {
			ends[l.last] = append(ends[l.last], wholes[m])
		}
	}
	for i, cmd := range c.Commands {
		if isSizing(c, i) {
			continue
		}
		for _, s := range starts[i] {
			commands = append(commands, computation.NewCommand(computation.AllocMatrix, s),
				computation.NewScaledCommand(computation.SetConst, 0, s))
		}
		if cmd.Type == computation.NoOperationPermanent {
			splices = append(splices, len(commands))
		}
		commands = append(commands, cmd)
		for _, s := range ends[i] {
			commands = append(commands, computation.NewCommand(computation.DeallocMatrix, s))
		}
	}
	return commands, splices
}

// carried is a matrix that a pass leaves to later ones. To compare it with others, the times of its
// rows count relative to the first one.
type carried struct {
	matrix int32
	time   int32
}

// closeLoop looks for two segments of a computation such that, after their inputs, the same
// matrices are in use, except for their times, which are as far apart as the segments. It cuts the
// computation off at the second segment, hands its matrices over to those of the first, and jumps
// there. It fails if there are no such segments.
//
// A matrix may be used up to horizon segments after its own, so it is unknown what is in use during
// the last horizon segments.
func closeLoop(c *computation.Computation, shift int32, horizon int) bool {
	lives := lifetimes(c)
	var permanent []int
	for i, cmd := range c.Commands {
		if cmd.Type == computation.NoOperationPermanent {
			permanent = append(permanent, i)
		}
	}
	carries := make([][]carried, max(len(permanent)-horizon, 0))
	for k := range carries {
		carries[k] = carriedAt(c, lives, permanent[k])
	}
	// The earliest second segment wins, and of its partners the latest: the commands end as early
	// as possible, and the loop is short.
	for j := 1; j < len(carries); j++ {
		for i := j - 1; i >= 0; i-- {
			// Equal up to time is what makes the jump right: from there on the commands between i
			// and j would be the same again, for matrices that hold the same rows at later times.
			if !alike(c, carries[i], carries[j], int32(j-i)*shift) || !timeless(c, carries[i], carries[j], i, j) {
				continue
			}
			swaps, ok := orderSwaps(carries[i], carries[j])
			if !ok {
				continue
			}
			// Only now that the loop is found, allocations move next to the uses. Matrices that
			// live across the end of an iteration are then the ones that it hands over, and no
			// others.
			commands, splices := moveSizing(c, lives)
			c.Commands = splice(c, commands, splices[i], splices[j], swaps)
			c.DropUnused()
			return true
		}
	}
	return false
}

// timeless reports whether the matrices in use at both segments i and j stay in use forever, like
// an input that is given once: until the end they are used alike every j-i segments.
func timeless(c *computation.Computation, a, b []carried, i, j int) bool {
	for k := range a {
		// A matrix that keeps its time must be the same matrix, as of an input given once. Then it
		// must stay in use to the end in the same rhythm, or else the loop would use what the
		// unrolled computation had no more use for.
		if a[k].time != b[k].time {
			continue
		}
		if a[k].matrix != b[k].matrix {
			return false
		}
		used := segmentsOf(c, a[k].matrix)
		if !slices.Contains(used[len(used)-(j-i):], true) {
			return false
		}
		for s := j; s < len(used); s++ {
			if used[s] != used[s-(j-i)] {
				return false
			}
		}
	}
	return true
}

// segmentsOf reports for each segment whether it uses a matrix, not counting that it accepts it.
func segmentsOf(c *computation.Computation, matrix int32) []bool {
	used := []bool{false}
	for i := range c.Commands {
		switch t := c.Commands[i].Type; {
		case isSizing(c, i) || t == computation.AcceptInput:
		case t == computation.NoOperationMarker:
			used = append(used, false)
		default:
			eachUse(c, i, func(sub int32) {
				if c.Submatrices[sub].Matrix == matrix {
					used[len(used)-1] = true
				}
			})
		}
	}
	return used[:len(used)-1] // nothing but the end follows the last marker
}

// carriedAt returns the matrices in use before and after a command, in an order independent of
// time.
func carriedAt(c *computation.Computation, lives []lifetime, at int) []carried {
	var list []carried
	for m := range lives {
		if l := &lives[m]; l.first < at && l.last > at {
			// Relative to the first row that has a time, two states of a recurrence at different
			// times look the same.
			time := int32(index.NoTime)
			for _, x := range c.MatrixDebugInfo[m].Cindexes {
				if x.Index.T != index.NoTime {
					time = x.Index.T
					break
				}
			}
			list = append(list, carried{int32(m), time})
		}
	}
	slices.SortFunc(list, func(a, b carried) int { return compareRows(c, a, b) })
	return list
}

// compareRows orders matrices by the Cindexes of their rows, with relative times, then by time.
func compareRows(c *computation.Computation, a, b carried) int {
	x, y := &c.MatrixDebugInfo[a.matrix], &c.MatrixDebugInfo[b.matrix]
	if d := cmp.Or(cmp.Compare(len(x.Cindexes), len(y.Cindexes)), cmp.Compare(c.Matrices[a.matrix].Cols, c.Matrices[b.matrix].Cols)); d != 0 {
		return d
	}
	for i := range x.Cindexes {
		p, q := relative(x.Cindexes[i], a.time), relative(y.Cindexes[i], b.time)
		if d := cmp.Or(cmp.Compare(p.Node, q.Node), index.Compare(p.Index, q.Index)); d != 0 {
			return d
		}
	}
	return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.matrix, b.matrix))
}

func relative(x index.Cindex, time int32) index.Cindex {
	if x.Index.T != index.NoTime {
		x.Index.T -= time
	}
	return x
}

// alike reports whether two lists have the same matrices, each at the same time or shift apart.
func alike(c *computation.Computation, a, b []carried, shift int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].time != b[i].time && b[i].time-a[i].time != shift {
			return false
		}
		x, y := &c.MatrixDebugInfo[a[i].matrix], &c.MatrixDebugInfo[b[i].matrix]
		if c.Matrices[a[i].matrix] != c.Matrices[b[i].matrix] || x.IsDeriv != y.IsDeriv || len(x.Cindexes) != len(y.Cindexes) {
			return false
		}
		for k := range x.Cindexes {
			if relative(x.Cindexes[k], a[i].time) != relative(y.Cindexes[k], b[i].time) {
				return false
			}
		}
	}
	return true
}

// orderSwaps returns the pairs of matrices (to, from) to swap so that the matrices of b take the
// places of those of a, in an order in which each place is free before it is taken.
func orderSwaps(a, b []carried) ([][2]int32, bool) {
	occupied := make(map[int32]bool, len(b))
	for _, m := range b {
		occupied[m.matrix] = true
	}
	var swaps [][2]int32
	done := make([]bool, len(a))
	left := 0
	for i := range a {
		if done[i] = a[i].matrix == b[i].matrix; !done[i] {
			left++
		}
	}
	// Each round makes the swaps whose destination is free, which frees others. If a round makes
	// none, the rest is a cycle, and another pair of segments must do.
	for left > 0 {
		before := left
		for i := range a {
			if !done[i] && !occupied[a[i].matrix] {
				swaps = append(swaps, [2]int32{a[i].matrix, b[i].matrix})
				occupied[a[i].matrix], occupied[b[i].matrix] = true, false
				done[i] = true
				left--
			}
		}
		if left == before {
			return nil, false
		}
	}
	return swaps, true
}

// splice returns the commands up to to, with a label before from and a jump back to it.
func splice(c *computation.Computation, commands []computation.Command, from, to int, swaps [][2]int32) []computation.Command {
	wholes := wholeSubmatrices(c)
	looped := slices.Concat(commands[:from], []computation.Command{computation.NewCommand(computation.NoOperationLabel)}, commands[from:to])
	for _, s := range swaps {
		looped = append(looped, computation.NewCommand(computation.SwapMatrix, wholes[s[0]], wholes[s[1]]))
	}
	return append(looped, computation.NewCommand(computation.GotoLabel, int32(from)))
}
