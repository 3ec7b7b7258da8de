package nnet3

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// NoPdf is the class of a state of a TopologyEntry that emits nothing.
const NoPdf = -1

// Transition leads to a state of the same entry with a probability.
type Transition struct {
	State       int32
	Probability float32
}

// HmmState is a state of a TopologyEntry. Its classes number the distributions within a phone; the one of its self-loop
// may differ from the one of its other transitions.
type HmmState struct {
	ForwardPdfClass, SelfLoopPdfClass int32 // or NoPdf
	Transitions                       []Transition
}

// Topology gives every phone the states of its hidden Markov model.
type Topology struct {
	Phones     []int32 // in ascending order
	PhoneEntry []int32 // by phone, the number of its entry, or -1
	Entries    [][]HmmState
}

// Tuple is a state of a phone, and the numbers of its distributions: columns of a network's output.
type Tuple struct{ Phone, HmmState, ForwardPdf, SelfLoopPdf int32 }

// TransitionModel is the part of a .mdl file that comes before the network. This package reads it and writes it, and
// takes nothing from it.
type TransitionModel struct {
	Topology Topology
	Tuples   []Tuple
	LogProbs []float32 // by transition-id, which counts from 1
}

// NumPdfs returns the number of distributions.
func (m *TransitionModel) NumPdfs() int {
	n := 0
	for _, t := range m.Tuples {
		n = max(n, int(t.ForwardPdf)+1, int(t.SelfLoopPdf)+1)
	}
	return n
}

// classic reports whether self-loops everywhere share the class of the other transitions, which the file says shorter.
func (t *Topology) classic() bool {
	for _, e := range t.Entries {
		for _, s := range e {
			if s.ForwardPdfClass != s.SelfLoopPdfClass {
				return false
			}
		}
	}
	return true
}

// ReadTransitionModel reads a transition model.
func ReadTransitionModel(r *kaldiio.Reader) (*TransitionModel, error) {
	m := new(TransitionModel)
	if err := r.Expect("<TransitionModel>"); err != nil {
		return nil, err
	}
	var err error
	if m.Topology, err = readTopology(r); err != nil {
		return nil, err
	}
	if m.Tuples, err = readTuples(r); err != nil {
		return nil, err
	}
	if err = r.Expect("<LogProbs>"); err != nil {
		return nil, err
	}
	if m.LogProbs, err = r.Vector(); err != nil {
		return nil, err
	}
	if err := r.Expect("</LogProbs>", "</TransitionModel>"); err != nil {
		return nil, err
	}
	return m, nil
}

// readTuples reads the list of tuples, with three numbers each or four.
func readTuples(r *kaldiio.Reader) ([]Tuple, error) {
	token, err := r.ExpectOneOf("<Triples>", "<Tuples>")
	if err != nil {
		return nil, err
	}
	n, err := readCount(r)
	if err != nil {
		return nil, err
	}
	tuples := make([]Tuple, 0, min(n, firstChunk))
	for range n {
		var t Tuple
		if err := readInts(r, &t.Phone, &t.HmmState, &t.ForwardPdf); err != nil {
			return nil, err
		}
		t.SelfLoopPdf = t.ForwardPdf
		if token == "<Tuples>" {
			if err := readInts(r, &t.SelfLoopPdf); err != nil {
				return nil, err
			}
		}
		tuples = append(tuples, t)
	}
	return tuples, r.Expect("</" + token[1:])
}

// firstChunk bounds what is allocated on the word of a header.
const firstChunk = 1 << 10

// readCount reads how many there are of something.
func readCount(r *kaldiio.Reader) (int, error) {
	n, err := r.Int()
	if err == nil && n < 0 {
		return 0, r.Errorf("a count is %d", n)
	}
	return n, err
}

func readInts(r *kaldiio.Reader, to ...*int32) (err error) {
	for _, p := range to {
		if *p, err = r.Int32(); err != nil {
			return err
		}
	}
	return nil
}

func readTopology(r *kaldiio.Reader) (t Topology, err error) {
	if err = r.Expect("<Topology>"); err != nil {
		return t, err
	}
	if !r.Binary() {
		return readTopologyText(r)
	}
	if t.Phones, err = r.IntVector(); err != nil {
		return t, err
	}
	if t.PhoneEntry, err = r.IntVector(); err != nil {
		return t, err
	}
	n, err := r.Int()
	if err != nil {
		return t, err
	}
	extended := n == -1
	if extended {
		if n, err = r.Int(); err != nil {
			return t, err
		}
	}
	if n < 0 {
		return t, r.Errorf("a topology of %d entries", n)
	}
	for range n {
		e, err := readEntry(r, extended)
		if err != nil {
			return t, err
		}
		t.Entries = append(t.Entries, e)
	}
	return t, r.Expect("</Topology>")
}

// readEntry reads the states of one entry from a binary file.
func readEntry(r *kaldiio.Reader, extended bool) ([]HmmState, error) {
	n, err := readCount(r)
	if err != nil {
		return nil, err
	}
	states := make([]HmmState, 0, min(n, firstChunk))
	for range n {
		var s HmmState
		if err := readInts(r, &s.ForwardPdfClass); err != nil {
			return nil, err
		}
		s.SelfLoopPdfClass = s.ForwardPdfClass
		if extended {
			if err := readInts(r, &s.SelfLoopPdfClass); err != nil {
				return nil, err
			}
		}
		k, err := readCount(r)
		if err != nil {
			return nil, err
		}
		for range k {
			var tr Transition
			if tr.State, err = r.Int32(); err != nil {
				return nil, err
			}
			if tr.Probability, err = r.Float32(); err != nil {
				return nil, err
			}
			s.Transitions = append(s.Transitions, tr)
		}
		states = append(states, s)
	}
	return states, nil
}

// maxPhone bounds the size of the table of phones that a text file asks for.
const maxPhone = 1 << 20

// readTopologyText reads entries up to the closing token.
func readTopologyText(r *kaldiio.Reader) (t Topology, err error) {
	for {
		token, err := r.ExpectOneOf("<TopologyEntry>", "</Topology>")
		if err != nil {
			return t, err
		}
		if token == "</Topology>" {
			slices.Sort(t.Phones)
			return t, nil
		}
		if err := r.Expect("<ForPhones>"); err != nil {
			return t, err
		}
		for !r.PeekIs("</ForPhones>") {
			p, err := r.Int32()
			if err != nil {
				return t, err
			}
			if p <= 0 || p > maxPhone {
				return t, r.Errorf("phone %d is not between 1 and %d", p, maxPhone)
			}
			for int(p) >= len(t.PhoneEntry) {
				t.PhoneEntry = append(t.PhoneEntry, -1)
			}
			if t.PhoneEntry[p] >= 0 {
				return t, r.Errorf("phone %d is in two entries", p)
			}
			t.PhoneEntry[p] = int32(len(t.Entries))
			t.Phones = append(t.Phones, p)
		}
		if err := r.Expect("</ForPhones>"); err != nil {
			return t, err
		}
		e, err := readEntryText(r)
		if err != nil {
			return t, err
		}
		t.Entries = append(t.Entries, e)
	}
}

// readEntryText reads states up to the closing token of the entry.
func readEntryText(r *kaldiio.Reader) ([]HmmState, error) {
	var states []HmmState
	for {
		token, err := r.ExpectOneOf("<State>", "</TopologyEntry>")
		if err != nil || token == "</TopologyEntry>" {
			return states, err
		}
		number, err := r.Int()
		if err != nil {
			return nil, err
		}
		if number != len(states) {
			return nil, r.Errorf("expected state %d, got state %d", len(states), number)
		}
		s := HmmState{ForwardPdfClass: NoPdf, SelfLoopPdfClass: NoPdf}
		if err := readStateText(r, &s); err != nil {
			return nil, err
		}
		states = append(states, s)
	}
}

// readStateText reads what follows the number of a state, up to the closing token.
func readStateText(r *kaldiio.Reader, s *HmmState) error {
	for {
		token, err := r.ExpectOneOf("<PdfClass>", "<ForwardPdfClass>", "<SelfLoopPdfClass>", "<Transition>", "<Final>", "</State>")
		if err != nil {
			return err
		}
		switch token {
		case "<PdfClass>":
			err = readInts(r, &s.ForwardPdfClass)
			s.SelfLoopPdfClass = s.ForwardPdfClass
		case "<ForwardPdfClass>":
			err = readInts(r, &s.ForwardPdfClass)
		case "<SelfLoopPdfClass>":
			err = readInts(r, &s.SelfLoopPdfClass)
		case "<Transition>":
			var tr Transition
			if tr.State, err = r.Int32(); err == nil {
				tr.Probability, err = r.Float32()
			}
			s.Transitions = append(s.Transitions, tr)
		case "<Final>":
			return r.Errorf("topologies with <Final> are older than nnet3")
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Write writes the transition model.
func (m *TransitionModel) Write(w *kaldiio.Writer) error {
	classic := m.Topology.classic()
	w.Token("<TransitionModel>")
	w.Newline()
	m.Topology.write(w, classic)
	token := "<Tuples>"
	if classic {
		token = "<Triples>"
	}
	w.Token(token)
	w.Int(len(m.Tuples))
	w.Newline()
	for _, t := range m.Tuples {
		w.Int32(t.Phone)
		w.Int32(t.HmmState)
		w.Int32(t.ForwardPdf)
		if !classic {
			w.Int32(t.SelfLoopPdf)
		}
		w.Newline()
	}
	w.Token("</" + token[1:])
	w.Newline()
	w.Token("<LogProbs>")
	w.Newline()
	w.Vector(m.LogProbs)
	w.Token("</LogProbs>")
	w.Newline()
	w.Token("</TransitionModel>")
	w.Newline()
	return w.Err()
}

func (t *Topology) write(w *kaldiio.Writer, classic bool) {
	w.Token("<Topology>")
	w.Newline()
	if w.Binary() {
		t.writeBinary(w, classic)
	} else {
		for i := range t.Entries {
			t.writeEntryText(w, i, classic)
		}
	}
	w.Token("</Topology>")
	w.Newline()
}

func (t *Topology) writeBinary(w *kaldiio.Writer, classic bool) {
	w.IntVector(t.Phones)
	w.IntVector(t.PhoneEntry)
	if !classic {
		w.Int(-1)
	}
	w.Int(len(t.Entries))
	for _, e := range t.Entries {
		w.Int(len(e))
		for _, s := range e {
			w.Int32(s.ForwardPdfClass)
			if !classic {
				w.Int32(s.SelfLoopPdfClass)
			}
			w.Int(len(s.Transitions))
			for _, tr := range s.Transitions {
				w.Int32(tr.State)
				w.Float32(tr.Probability)
			}
		}
	}
}

func (t *Topology) writeEntryText(w *kaldiio.Writer, entry int, classic bool) {
	w.Raw("<TopologyEntry> \n<ForPhones> \n")
	for phone, e := range t.PhoneEntry {
		if int(e) == entry && phone <= math.MaxInt32 {
			w.Int(phone)
		}
	}
	w.Raw("\n</ForPhones> \n")
	for i, s := range t.Entries[entry] {
		w.Token("<State>")
		w.Int(i)
		switch {
		case s.ForwardPdfClass == NoPdf && s.SelfLoopPdfClass == NoPdf:
		case classic:
			w.Token("<PdfClass>")
			w.Int32(s.ForwardPdfClass)
		default:
			w.Token("<ForwardPdfClass>")
			w.Int32(s.ForwardPdfClass)
			w.Token("<SelfLoopPdfClass>")
			w.Int32(s.SelfLoopPdfClass)
		}
		for _, tr := range s.Transitions {
			w.Token("<Transition>")
			w.Int32(tr.State)
			w.Float32(tr.Probability)
		}
		w.Raw("</State> \n")
	}
	w.Raw("</TopologyEntry> \n")
}
