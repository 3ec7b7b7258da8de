package nnet3

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// AmNnetSimple is an acoustic model: a network with the rest of what decoding needs.
type AmNnetSimple struct {
	transitions *transitionModel // nil if the file has none
	Nnet        *Nnet
	// Raw says that the file holds only the network.
	Raw bool
	// LeftContext and RightContext are the frames that the network looks at before and after the
	// one it computes, as stated in the file; 0 for a raw network.
	LeftContext, RightContext int
	// Priors are the probabilities of the classes, one for each column of the node "output". Empty
	// means not to divide by priors.
	Priors []float32
}

// maxModel bounds the bytes of a model: 16 GiB, four times what config lines may ask for.
const maxModel = 1 << 34

// ReadModel is [Loader.ReadModel] for the types of package component.
func ReadModel(r *kaldiio.Reader) (*AmNnetSimple, error) { return Loader{}.ReadModel(r) }

// ReadModel reads a model of any form: a .mdl file (transition model, network, contexts and
// priors), an AmNnetSimple without a transition model, or a raw network. If the model needs
// component types that the registry does not have, an error that wraps ErrUnsupported lists them.
func (l Loader) ReadModel(r *kaldiio.Reader) (*AmNnetSimple, error) {
	r.Limit(maxModel)
	am := new(AmNnetSimple)
	var err error
	if r.PeekIs("<TransitionModel>") {
		if am.transitions, err = readTransitionModel(r); err != nil {
			return nil, err
		}
	}
	if am.Nnet, err = l.ReadNnet(r); err != nil {
		return nil, err
	}
	if am.Raw = am.transitions == nil && !r.PeekIs("<LeftContext>"); am.Raw {
		return am, nil
	}
	c := codec{r: r}
	am.codeDecoding(&c)
	if c.err != nil {
		return nil, c.err
	}
	if dim := am.Nnet.OutputNodeDim("output"); len(am.Priors) > 0 && len(am.Priors) != dim {
		return nil, fmt.Errorf("%s: %d priors for %d columns of the node output: %w", r.Name(), len(am.Priors), dim, ErrNetwork)
	}
	return am, nil
}

func readTransitionModel(r *kaldiio.Reader) (*transitionModel, error) {
	m, c := new(transitionModel), codec{r: r}
	m.code(&c)
	return m, c.err
}

// Write writes the model in the form in which it was read: raw, with contexts and priors, or with a
// transition model as well.
func (am *AmNnetSimple) Write(w *kaldiio.Writer) error {
	c := codec{w: w}
	if am.transitions != nil && !am.Raw {
		am.transitions.code(&c)
	}
	if err := am.Nnet.Write(w); err != nil || am.Raw {
		return err
	}
	am.codeDecoding(&c)
	return w.Err()
}

// codeDecoding reads or writes what follows the network.
func (am *AmNnetSimple) codeDecoding(c *codec) {
	c.token("<LeftContext>")
	c.int(&am.LeftContext)
	c.token("<RightContext>")
	c.int(&am.RightContext)
	c.token("<Priors>")
	c.vector(&am.Priors)
}

// transitionModel is the part of a .mdl file before the network: the hidden Markov models of the
// phones. This package keeps it as it is and uses nothing of it.
type transitionModel struct {
	topology topology
	tuples   []tuple
	logProbs []float32 // by transition-id, which counts from 1
}

// noPdf is the class of a state that emits nothing.
const noPdf = -1

// transition leads to a state of the same entry with a probability.
type transition struct {
	State       int32
	Probability float32
}

// hmmState is a state of an entry of a topology. Its classes number the distributions within a
// phone; the class of its self-loop may differ from the class of its other transitions.
type hmmState struct {
	ForwardPdfClass, SelfLoopPdfClass int32 // or noPdf
	Transitions                       []transition
}

// topology gives every phone the states of its hidden Markov model.
type topology struct {
	Phones     []int32 // in ascending order
	PhoneEntry []int32 // by phone, the number of its entry, or -1
	Entries    [][]hmmState
}

// tuple is a state of a phone and its distributions, which are columns of a network's output.
type tuple struct{ Phone, HmmState, ForwardPdf, SelfLoopPdf int32 }

// isClassic reports whether all self-loops share the class of the other transitions. The file is
// shorter then.
func (t *topology) isClassic() bool {
	for _, e := range t.Entries {
		for _, s := range e {
			if s.ForwardPdfClass != s.SelfLoopPdfClass {
				return false
			}
		}
	}
	return true
}

// code reads or writes the transition model.
func (m *transitionModel) code(c *codec) {
	classic := m.topology.isClassic()
	c.line("<TransitionModel>")
	m.topology.code(c, classic)
	list := "Tuples>"
	if c.has("<Triples>", classic) {
		list = "Triples>"
	}
	c.token("<" + list)
	n := len(m.tuples)
	c.int(&n)
	c.check(n >= 0, "a count is %d", n)
	c.newline()
	elements(c, n, &m.tuples, func(t *tuple) {
		c.int32s(&t.Phone, &t.HmmState, &t.ForwardPdf)
		if list == "Tuples>" {
			c.int32s(&t.SelfLoopPdf)
		} else if c.w == nil {
			t.SelfLoopPdf = t.ForwardPdf
		}
		c.newline()
	})
	c.line("</" + list)
	c.line("<LogProbs>")
	c.vector(&m.logProbs)
	c.line("</LogProbs>")
	c.line("</TransitionModel>")
}

// code reads or writes the topology. Only a codec that writes looks at classic.
func (t *topology) code(c *codec, classic bool) {
	c.line("<Topology>")
	if c.binary() {
		t.codeBinary(c, classic)
	} else {
		tokened(c, "<TopologyEntry>", &t.Entries, func(i int, e *[]hmmState) { t.codeText(c, i, e, classic) })
		if c.w == nil {
			slices.Sort(t.Phones)
		}
	}
	c.line("</Topology>")
}

func (t *topology) codeBinary(c *codec, classic bool) {
	c.intVector(&t.Phones)
	c.intVector(&t.PhoneEntry)
	n := len(t.Entries)
	if !classic {
		n = -1
	}
	c.int(&n)
	if classic = n != -1; !classic {
		n = len(t.Entries)
		c.int(&n)
	}
	c.check(n >= 0, "a topology of %d entries", n)
	elements(c, n, &t.Entries, func(e *[]hmmState) {
		counted(c, e, func(s *hmmState) {
			c.int32s(&s.ForwardPdfClass)
			if !classic {
				c.int32s(&s.SelfLoopPdfClass)
			} else if c.w == nil {
				s.SelfLoopPdfClass = s.ForwardPdfClass
			}
			counted(c, &s.Transitions, func(tr *transition) {
				c.int32s(&tr.State)
				c.float(&tr.Probability)
			})
		})
	})
}

// codeText reads or writes entry i in text.
func (t *topology) codeText(c *codec, i int, e *[]hmmState, classic bool) {
	c.line("<TopologyEntry>")
	c.line("<ForPhones>")
	if c.w == nil {
		t.readPhones(c, i)
	} else {
		for phone, of := range t.PhoneEntry {
			if int(of) == i {
				c.w.Int(phone)
			}
		}
	}
	c.newline()
	c.line("</ForPhones>")
	tokened(c, "<State>", e, func(i int, s *hmmState) {
		c.token("<State>")
		number := i
		c.int(&number)
		c.check(number == i, "expected state %d, got state %d", i, number)
		s.codeText(c, classic)
		c.line("</State>")
	})
	c.line("</TopologyEntry>")
}

// maxPhone bounds the table of phones that a text file asks for.
const maxPhone = 1 << 20

// readPhones reads the phones of an entry from text.
func (t *topology) readPhones(c *codec, entry int) {
	for c.err == nil && !c.r.PeekIs("</ForPhones>") {
		var p int32
		c.int32s(&p)
		c.check(p > 0 && p <= maxPhone, "phone %d is not between 1 and %d", p, maxPhone)
		if c.err != nil {
			return
		}
		for int(p) >= len(t.PhoneEntry) {
			t.PhoneEntry = append(t.PhoneEntry, -1)
		}
		c.check(t.PhoneEntry[p] < 0, "phone %d is in two entries", p)
		t.PhoneEntry[p] = int32(entry)
		t.Phones = append(t.Phones, p)
	}
}

// codeText reads or writes a state in text, after its number.
func (s *hmmState) codeText(c *codec, classic bool) {
	if c.w == nil {
		s.ForwardPdfClass, s.SelfLoopPdfClass = noPdf, noPdf
	}
	emits := s.ForwardPdfClass != noPdf || s.SelfLoopPdfClass != noPdf
	if c.has("<PdfClass>", emits && classic) {
		c.token("<PdfClass>")
		c.int32s(&s.ForwardPdfClass)
		if c.w == nil {
			s.SelfLoopPdfClass = s.ForwardPdfClass
		}
	}
	if c.has("<ForwardPdfClass>", emits && !classic) {
		c.token("<ForwardPdfClass>")
		c.int32s(&s.ForwardPdfClass)
	}
	if c.has("<SelfLoopPdfClass>", emits && !classic) {
		c.token("<SelfLoopPdfClass>")
		c.int32s(&s.SelfLoopPdfClass)
	}
	tokened(c, "<Transition>", &s.Transitions, func(_ int, tr *transition) {
		c.token("<Transition>")
		c.int32s(&tr.State)
		c.float(&tr.Probability)
	})
	c.check(!c.has("<Final>", false), "topologies with <Final> are older than nnet3")
}
