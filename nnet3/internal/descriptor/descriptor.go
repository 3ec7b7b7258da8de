package descriptor

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/nnet3/index"
)

// Descriptor is a descriptor in normal form: the columns of its parts, side by side.
type Descriptor struct{ Parts []Sum }

// SumKind is the kind of a Sum.
type SumKind uint8

// The kinds of Sum.
const (
	Simple    SumKind = iota // the row that Forward leads to, times its scale
	Const                    // Value in each of Dim columns
	Add                      // the sum of two or more Args; all must be computable
	Failover                 // the first of two Args that is computable
	IfDefined                // the only one of Args, or zero if it is not computable
)

// Sum is a part of a descriptor: a sum of rows of nodes.
type Sum struct {
	Kind    SumKind
	Forward Forward // of Simple
	Value   float32 // of Const
	Dim     int     // of Const, in columns
	Args    []Sum   // of the others; the last one of an Add is not an Add
}

// ForwardKind says what a Forward does to an index.
type ForwardKind uint8

// The kinds of Forward.
const (
	Node     ForwardKind = iota // the end: the row of Node at this index, times Scale
	Offset                      // adds Shift
	Switch                      // continues with Src number t mod len(Src)
	Round                       // rounds t down to a multiple of Modulus
	ReplaceT                    // sets t to Value
	ReplaceX                    // sets x to Value
)

// Forward leads from an index of the output to a Cindex.
type Forward struct {
	Kind    ForwardKind
	Node    int32       // of Node: its number
	Scale   float32     // of Node
	Shift   index.Index // of Offset; N is 0
	Modulus int32       // of Round, positive
	Value   int32       // of ReplaceT and ReplaceX
	Src     []Forward   // none for Node, several for Switch, else one
}

// Term is a row of a node and its factor.
type Term struct {
	Cindex index.Cindex
	Scale  float32
}

// At returns the row that the output takes at the given index, with index.NoTime if out of range.
func (f *Forward) At(at index.Index) Term {
	for {
		switch f.Kind {
		case Node:
			return Term{index.Cindex{Node: f.Node, Index: at}, f.Scale}
		case Offset:
			at = at.Add(f.Shift)
		case Switch:
			f = &f.Src[floorMod(at.T, int32(len(f.Src)))]
			continue
		case Round:
			at = at.Add(index.Index{T: -floorMod(at.T, f.Modulus)})
		case ReplaceT:
			if at.T != index.NoTime {
				at.T = f.Value
			}
		case ReplaceX:
			at.X = f.Value
		}
		f = &f.Src[0]
	}
}

// floorMod returns a mod m, from 0 to m-1.
func floorMod(a, m int32) int32 {
	r := a % m
	if r < 0 {
		r += m
	}
	return r
}

// Eval appends to dst the rows that add up to the part at the given index. The constant is added to
// each column. If the part can't be computed from the Cindexes for which has returns true, Eval
// returns dst as it was, and false.
func (s *Sum) Eval(at index.Index, has func(index.Cindex) bool, dst []Term) (terms []Term, constant float32, ok bool) {
	switch s.Kind {
	case Simple:
		t := s.Forward.At(at)
		if !has(t.Cindex) {
			return dst, 0, false
		}
		return append(dst, t), 0, true
	case Const:
		return dst, s.Value, true
	case Add:
		n := len(dst)
		for i := range s.Args {
			var c float32
			if dst, c, ok = s.Args[i].Eval(at, has, dst); !ok {
				return dst[:n], 0, false
			}
			constant += c
		}
		return dst, constant, true
	case Failover:
		if terms, constant, ok = s.Args[0].Eval(at, has, dst); ok {
			return terms, constant, true
		}
		return s.Args[1].Eval(at, has, dst)
	default: // IfDefined
		terms, constant, _ = s.Args[0].Eval(at, has, dst)
		return terms, constant, true
	}
}

// Constant returns the sum of the constants of the part. It returns false if that depends on what
// is computable, as with a Const inside Failover or IfDefined.
func (s *Sum) Constant() (value float32, fixed bool) {
	switch s.Kind {
	case Const:
		return s.Value, true
	case Add:
		for i := range s.Args {
			v, ok := s.Args[i].Constant()
			if !ok {
				return 0, false
			}
			value += v
		}
	case Failover, IfDefined:
		for i := range s.Args {
			if v, ok := s.Args[i].Constant(); !ok || v != 0 {
				return 0, false
			}
		}
	}
	return value, true
}

// IsComputable reports whether all parts can be computed at the given index from the Cindexes for
// which has returns true. If so, and used is not nil, it appends the Cindexes that they take to
// *used, part by part, with repetitions.
func (d *Descriptor) IsComputable(at index.Index, has func(index.Cindex) bool, used *[]index.Cindex) bool {
	var terms []Term
	for i := range d.Parts {
		var ok bool
		if terms, _, ok = d.Parts[i].Eval(at, has, terms); !ok {
			return false
		}
	}
	if used != nil {
		for _, t := range terms {
			*used = append(*used, t.Cindex)
		}
	}
	return true
}

// Dependencies appends to dst every Cindex that the descriptor might take at the given index, part
// by part, with repetitions.
func (d *Descriptor) Dependencies(at index.Index, dst []index.Cindex) []index.Cindex {
	leaves(d.Parts, func(s *Sum) {
		if s.Kind == Simple {
			dst = append(dst, s.Forward.At(at).Cindex)
		}
	})
	return dst
}

// leaves calls visit for every Simple and Const in the sums.
func leaves(sums []Sum, visit func(*Sum)) {
	for i := range sums {
		sums[i].leaves(visit)
	}
}

// leaves calls visit for every Simple and Const in the sum.
func (s *Sum) leaves(visit func(*Sum)) {
	if s.Kind == Simple || s.Kind == Const {
		visit(s)
	} else {
		leaves(s.Args, visit)
	}
}

// walk calls visit for the Forward and everything inside it.
func (f *Forward) walk(visit func(*Forward)) {
	visit(f)
	for i := range f.Src {
		f.Src[i].walk(visit)
	}
}

// Nodes appends to dst the numbers of the nodes that the descriptor refers to, by first occurrence.
func (d *Descriptor) Nodes(dst []int) []int {
	const few = 32 // up to this number a search costs less than a map
	start := len(dst)
	var seen map[int]bool
	add := func(f *Forward) {
		n := int(f.Node)
		switch {
		case f.Kind != Node || seen[n] || seen == nil && slices.Contains(dst[start:], n):
			return
		case seen != nil:
			seen[n] = true
		// A list becomes a map once it is long; descriptors of hostile size would take quadratic
		// time.
		case len(dst)-start == few:
			seen = map[int]bool{n: true}
			for _, m := range dst[start:] {
				seen[m] = true
			}
		}
		dst = append(dst, n)
	}
	leaves(d.Parts, func(s *Sum) {
		if s.Kind == Simple {
			s.Forward.walk(add)
		}
	})
	return dst
}

// Map returns a copy with f applied to every Forward, from the nodes upwards.
func (d Descriptor) Map(f func(Forward) Forward) Descriptor {
	return Descriptor{lists.Map(d.Parts, func(p Sum) Sum { return p.mapped(f) })}
}

func (s Sum) mapped(f func(Forward) Forward) Sum {
	if s.Kind == Simple {
		s.Forward = s.Forward.mapped(f)
		return s
	}
	args := lists.Map(s.Args, func(a Sum) Sum { return a.mapped(f) })
	if s.Args != nil {
		s.Args = args
	}
	return s
}

func (f Forward) mapped(change func(Forward) Forward) Forward {
	if f.Src != nil {
		src := lists.Map(f.Src, func(a Forward) Forward { return a.mapped(change) })
		f.Src = src
	}
	return change(f)
}

// Dim returns the number of columns. The function nodeDim returns the number of columns of a node,
// negative if unknown. All terms of a part must agree; if not, the error wraps errDimension.
func (d *Descriptor) Dim(nodeDim func(node int) int) (int, error) {
	dim := 0
	for i := range d.Parts {
		n, err := d.Parts[i].Columns(nodeDim)
		if err != nil {
			return 0, fmt.Errorf("part %d of the descriptor: %w", i+1, err)
		}
		if n > math.MaxInt32-dim {
			return 0, fmt.Errorf("the descriptor has more than %d columns", math.MaxInt32)
		}
		dim += n
	}
	return dim, nil
}

// Columns returns the number of columns of the part. If its terms disagree the error wraps
// errDimension.
func (s *Sum) Columns(nodeDim func(node int) int) (int, error) {
	dim := -1
	var err error
	agree := func(n int) {
		if n < 0 && err == nil {
			err = fmt.Errorf("a node has no definite number of columns: %w", errDimension)
		}
		if dim < 0 {
			dim = n
		} else if n != dim && err == nil {
			err = fmt.Errorf("terms have %d and %d columns: %w", dim, n, errDimension)
		}
	}
	nodes := func(f *Forward) {
		if f.Kind == Node {
			agree(nodeDim(int(f.Node)))
		}
	}
	s.leaves(func(s *Sum) {
		if s.Kind == Const {
			agree(s.Dim)
		} else {
			s.Forward.walk(nodes)
		}
	})
	return dim, err
}

// Modulus returns the smallest m such that shifting all times by m shifts the rows that the
// descriptor takes by m too, except inside ReplaceIndex(…, t, …), which no shift reaches. If that
// is math.MaxInt32 or more it returns math.MaxInt32. (Kaldi ignores moduli inside Round and inside
// ReplaceIndex of x. That is too small for forms that its recipes do not use.)
func (d *Descriptor) Modulus() int {
	m := 1
	leaves(d.Parts, func(s *Sum) {
		if s.Kind == Simple {
			m = LCM(m, s.Forward.modulus())
		}
	})
	return m
}

func (f *Forward) modulus() int {
	m := 1
	// A fixed time hides everything inside from shifts.
	switch {
	case f.Kind == ReplaceT:
		return 1
	case f.Kind == Round:
		m = int(f.Modulus)
	case f.Kind == Switch:
		m = len(f.Src)
	}
	for i := range f.Src {
		m = LCM(m, f.Src[i].modulus())
	}
	return m
}

// LCM returns the least common multiple of two positive numbers, at most math.MaxInt32.
func LCM(a, b int) int {
	g, r := a, b
	for r != 0 {
		g, r = r, g%r
	}
	if l := int64(a/g) * int64(b); l < math.MaxInt32 {
		return int(l)
	}
	return math.MaxInt32
}
