package index

import (
	"cmp"
	"math"
	"strconv"
)

// NoTime is the time of a row without a time, such as padding.
const NoTime = math.MinInt32

// Index names a row: sequence N of a minibatch, time T, and an extra coordinate X, usually 0.
type Index struct{ N, T, X int32 }

// Cindex names a row of a node. Node is its number in the network.
type Cindex struct {
	Node  int32
	Index Index
}

// Compare orders by t, then x, then n, the order of rows in a computation.
func Compare(a, b Index) int {
	if c := cmp.Compare(a.T, b.T); c != 0 {
		return c
	}
	if c := cmp.Compare(a.X, b.X); c != 0 {
		return c
	}
	return cmp.Compare(a.N, b.N)
}

// Add returns the sum, coordinate by coordinate. NoTime plus anything is NoTime. So is a sum out of
// range, so that it is not taken for another row.
func (a Index) Add(b Index) Index {
	// int32 wraps around. A sum in 64 bits tells whether it did.
	sum := Index{a.N + b.N, a.T + b.T, a.X + b.X}
	if a.T == NoTime || int64(sum.T) != int64(a.T)+int64(b.T) || int64(sum.X) != int64(a.X)+int64(b.X) {
		sum.T = NoTime
	}
	return sum
}

// String returns (n,t), or (n,t,x) if x is not 0.
func (a Index) String() string { return string(a.appendRun(nil, a.T)) }

// appendRun appends the printed form of the rows from a to time last.
func (a Index) appendRun(b []byte, last int32) []byte {
	b = append(strconv.AppendInt(append(b, '('), int64(a.N), 10), ',')
	b = appendTime(b, a.T)
	if last != a.T {
		b = appendTime(append(b, ':'), last)
	}
	if a.X != 0 {
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(a.X), 10)
	}
	return append(b, ')')
}

func appendTime(b []byte, t int32) []byte {
	if t == NoTime {
		return append(b, "no-time"...)
	}
	return strconv.AppendInt(b, int64(t), 10)
}

// String returns the number of the node and the index.
func (c Cindex) String() string { return "node" + strconv.Itoa(int(c.Node)) + c.Index.String() }

// Format prints indexes compactly. Rows of a sequence at consecutive times become (n,first:last),
// as in [(0,-3:12), (1,-3:12)].
func Format(s []Index) string {
	if len(s) == 0 {
		return "[ ]"
	}
	b := []byte{'['}
	for i := 0; i < len(s); {
		j := i + 1
		for j < len(s) && s[j] == (Index{s[i].N, s[j-1].T + 1, s[i].X}) {
			j++
		}
		if i > 0 {
			b = append(b, ", "...)
		}
		b = s[i].appendRun(b, s[j-1].T)
		i = j
	}
	return string(append(b, ']'))
}

// FormatCindexes prints Cindexes as Format does, node by node.
func FormatCindexes(s []Cindex, nodeName func(node int) string) string {
	if len(s) == 0 {
		return "[ ]"
	}
	var b []byte
	var run []Index
	for i := 0; i < len(s); {
		run = run[:0]
		node := s[i].Node
		for ; i < len(s) && s[i].Node == node; i++ {
			run = append(run, s[i].Index)
		}
		b = append(b, nodeName(int(node))...)
		b = append(b, Format(run)...)
	}
	return string(b)
}
