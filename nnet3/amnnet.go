package nnet3

import (
	"fmt"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// AmNnetSimple is an acoustic model: a network with the rest of what decoding needs.
type AmNnetSimple struct {
	Transitions *TransitionModel // nil if the file has none
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
		if am.Transitions, err = readTransitionModel(r); err != nil {
			return nil, err
		}
	}
	if am.Nnet, err = l.ReadNnet(r); err != nil {
		return nil, err
	}
	if am.Raw = am.Transitions == nil && !r.PeekIs("<LeftContext>"); am.Raw {
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

func readTransitionModel(r *kaldiio.Reader) (*TransitionModel, error) {
	m, c := new(TransitionModel), codec{r: r}
	m.code(&c)
	return m, c.err
}

// Write writes the model in the form in which it was read: raw, with contexts and priors, or with a
// transition model as well.
func (am *AmNnetSimple) Write(w *kaldiio.Writer) error {
	c := codec{w: w}
	if am.Transitions != nil && !am.Raw {
		am.Transitions.code(&c)
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
