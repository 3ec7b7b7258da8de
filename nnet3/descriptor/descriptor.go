package descriptor

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/nnet3/index"
)

// Descriptor is the normal form: the columns of the parts stand side by side.
type Descriptor struct{ Parts []Sum }

// SumKind says what a Sum is.
type SumKind uint8

// The kinds of Sum.
const (
	Simple    SumKind = iota // the row that Forward leads to, times its scale
	Const                    // Value in each of Dim columns
	Add                      // the sum of Args, two or more; all must be computable
	Failover                 // the first of the two Args that is computable
	IfDefined                // the one of Args, or zero where it is not computable
)

// Sum is one part of a descriptor: a sum of rows of nodes.
type Sum struct {
	Kind    SumKind
	Forward Forward // of Simple
	Value   float32 // of Const
	Dim     int     // of Const, in columns
	Args    []Sum   // of the others; of Add, the last is no Add
}

// ForwardKind says what a Forward does to an index.
type ForwardKind uint8

// The kinds of Forward.
const (
	Node         ForwardKind = iota // the end: row of Node at this index, times Scale
	Offset                          // adds Shift
	Switch                          // goes on with Src number t mod len(Src)
	Round                           // rounds t down to a multiple of Modulus
	ReplaceIndex                    // sets Variable to Value
)

// Variable is the coordinate that ReplaceIndex sets.
type Variable uint8

// The coordinates that can be replaced.
const (
	T Variable = iota // the time
	X                 // the extra coordinate
)

// String returns the name of the coordinate in the language.
func (v Variable) String() string { return [...]string{"t", "x"}[v&1] }

// Forward leads from an index of the output to a Cindex.
type Forward struct {
	Kind     ForwardKind
	Node     int32       // of Node: its number
	Scale    float32     // of Node
	Shift    index.Index // of Offset; N is 0
	Modulus  int32       // of Round, positive
	Variable Variable    // of ReplaceIndex
	Value    int32       // of ReplaceIndex
	Src      []Forward   // one, but for Switch; none for Node
}

// Term is a row of a node, and what it is multiplied by.
type Term struct {
	Cindex index.Cindex
	Scale  float32
}

// At returns the row that the output at the given index takes. Where that is out of range its time is index.NoTime.
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
		case ReplaceIndex:
			if f.Variable == X {
				at.X = f.Value
			} else if at.T != index.NoTime {
				at.T = f.Value
			}
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

// Eval appends to dst the rows that add up to the part at the given index. The constant is to be added to each column.
// It returns false, and dst as it was, if the part can't be computed from the Cindexes for which has returns true.
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

// IsComputable reports whether the part can be computed at the given index from the Cindexes for which has returns
// true. If so, and used is not nil, the Cindexes that it takes are appended to *used.
func (s *Sum) IsComputable(at index.Index, has func(index.Cindex) bool, used *[]index.Cindex) bool {
	switch s.Kind {
	case Simple:
		c := s.Forward.At(at).Cindex
		if !has(c) {
			return false
		}
		if used != nil {
			*used = append(*used, c)
		}
		return true
	case Add:
		n := 0
		if used != nil {
			n = len(*used)
		}
		for i := range s.Args {
			if !s.Args[i].IsComputable(at, has, used) {
				if used != nil {
					*used = (*used)[:n]
				}
				return false
			}
		}
		return true
	case Failover:
		return s.Args[0].IsComputable(at, has, used) || s.Args[1].IsComputable(at, has, used)
	case IfDefined:
		s.Args[0].IsComputable(at, has, used)
	}
	return true
}

// Dependencies appends to dst every Cindex that the part might take at the given index.
func (s *Sum) Dependencies(at index.Index, dst []index.Cindex) []index.Cindex {
	if s.Kind == Simple {
		return append(dst, s.Forward.At(at).Cindex)
	}
	for i := range s.Args {
		dst = s.Args[i].Dependencies(at, dst)
	}
	return dst
}

// Constant returns the sum of the constants of the part. It returns false if that depends on what is computable, as it
// does for a Const inside Failover or IfDefined.
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

// IsComputable reports whether all parts can be computed at the given index from the Cindexes for which has returns
// true. If so, and used is not nil, the Cindexes that they take are appended to *used, part by part, with repetitions.
func (d *Descriptor) IsComputable(at index.Index, has func(index.Cindex) bool, used *[]index.Cindex) bool {
	n := 0
	if used != nil {
		n = len(*used)
	}
	for i := range d.Parts {
		if !d.Parts[i].IsComputable(at, has, used) {
			if used != nil {
				*used = (*used)[:n]
			}
			return false
		}
	}
	return true
}

// Dependencies appends to dst every Cindex that the descriptor might take at the given index, part by part, with
// repetitions.
func (d *Descriptor) Dependencies(at index.Index, dst []index.Cindex) []index.Cindex {
	for i := range d.Parts {
		dst = d.Parts[i].Dependencies(at, dst)
	}
	return dst
}

// walk calls visit for every Forward of the part and for everything below it.
func (s *Sum) walk(visit func(*Forward)) {
	if s.Kind == Simple {
		s.Forward.walk(visit)
	}
	for i := range s.Args {
		s.Args[i].walk(visit)
	}
}

func (f *Forward) walk(visit func(*Forward)) {
	visit(f)
	for i := range f.Src {
		f.Src[i].walk(visit)
	}
}

// Nodes appends to dst the numbers of the nodes that the descriptor refers to, in the order in which they first occur.
func (d *Descriptor) Nodes(dst []int) []int {
	const few = 32 // up to here a search costs less than a map
	start := len(dst)
	var seen map[int]bool
	for i := range d.Parts {
		d.Parts[i].walk(func(f *Forward) {
			n := int(f.Node)
			switch {
			case f.Kind != Node || seen[n] || seen == nil && slices.Contains(dst[start:], n):
				return
			case seen != nil:
				seen[n] = true
			case len(dst)-start == few:
				seen = map[int]bool{n: true}
				for _, m := range dst[start:] {
					seen[m] = true
				}
			}
			dst = append(dst, n)
		})
	}
	return dst
}

// Map returns a copy in which f has been applied to every Forward, from the nodes upwards.
func (d Descriptor) Map(f func(Forward) Forward) Descriptor {
	parts := make([]Sum, len(d.Parts))
	for i, p := range d.Parts {
		parts[i] = p.mapped(f)
	}
	return Descriptor{parts}
}

func (s Sum) mapped(f func(Forward) Forward) Sum {
	if s.Kind == Simple {
		s.Forward = s.Forward.mapped(f)
		return s
	}
	args := make([]Sum, len(s.Args))
	for i, a := range s.Args {
		args[i] = a.mapped(f)
	}
	if s.Args != nil {
		s.Args = args
	}
	return s
}

func (f Forward) mapped(change func(Forward) Forward) Forward {
	if f.Src != nil {
		src := make([]Forward, len(f.Src))
		for i, a := range f.Src {
			src[i] = a.mapped(change)
		}
		f.Src = src
	}
	return change(f)
}

// MapNodes returns a copy in which every node number went through f.
func (d Descriptor) MapNodes(f func(int) int) Descriptor {
	return d.Map(func(fw Forward) Forward {
		if fw.Kind == Node {
			fw.Node = int32(f(int(fw.Node)))
		}
		return fw
	})
}

// Dim returns the number of columns, given the number of columns of each node, which is negative if it is not known. All
// terms of a part must agree.
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

// Columns returns the number of columns of the part. All its terms must agree.
func (s *Sum) Columns(nodeDim func(node int) int) (int, error) {
	dim := -1
	var err error
	agree := func(n int) {
		if n < 0 && err == nil {
			err = fmt.Errorf("a node has no definite number of columns: %w", ErrDimension)
		}
		if dim < 0 {
			dim = n
		} else if n != dim && err == nil {
			err = fmt.Errorf("terms have %d and %d columns: %w", dim, n, ErrDimension)
		}
	}
	s.eachDim(nodeDim, agree)
	return dim, err
}

func (s *Sum) eachDim(nodeDim func(node int) int, yield func(int)) {
	switch s.Kind {
	case Const:
		yield(s.Dim)
	case Simple:
		s.Forward.walk(func(f *Forward) {
			if f.Kind == Node {
				yield(nodeDim(int(f.Node)))
			}
		})
	}
	for i := range s.Args {
		s.Args[i].eachDim(nodeDim, yield)
	}
}

// Modulus returns the smallest m such that shifting all times by m shifts what the descriptor takes by m too, except
// inside ReplaceIndex(…, t, …), which no shift reaches. (Kaldi leaves out what is inside Round, and inside ReplaceIndex
// of x, which is too little for forms that its recipes do not use.) It returns math.MaxInt32 for what would be larger.
func (d *Descriptor) Modulus() int {
	m := 1
	for i := range d.Parts {
		m = LCM(m, d.Parts[i].modulus())
	}
	return m
}

func (s *Sum) modulus() int {
	if s.Kind == Simple {
		return s.Forward.modulus()
	}
	m := 1
	for i := range s.Args {
		m = LCM(m, s.Args[i].modulus())
	}
	return m
}

func (f *Forward) modulus() int {
	m := 1
	switch {
	case f.Kind == ReplaceIndex && f.Variable == T:
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
