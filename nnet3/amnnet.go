package nnet3

import (
	"fmt"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// AmNnetSimple is an acoustic model: a network with what decoding needs besides.
type AmNnetSimple struct {
	Transitions *TransitionModel // nil if the file has none
	Nnet        *Nnet
	// Raw says that the file holds the network alone.
	Raw bool
	// LeftContext and RightContext are the frames that the network looks at before and after the one it computes, as
	// they stand in the file; 0 for a raw network.
	LeftContext, RightContext int
	// Priors are the probabilities of the classes, one per column of the node "output". Empty means that none are to be
	// divided by.
	Priors []float32
}

// maxModel bounds the bytes of a model: 16 GiB, four times as much as the numbers that config lines may make up.
const maxModel = 1 << 34

// ReadModel reads a model of any form: a .mdl file (transition model, network, contexts and priors), an AmNnetSimple
// without a transition model, or a raw network.
func ReadModel(r *kaldiio.Reader) (*AmNnetSimple, error) {
	r.Limit(maxModel)
	am := new(AmNnetSimple)
	var err error
	if r.PeekIs("<TransitionModel>") {
		if am.Transitions, err = ReadTransitionModel(r); err != nil {
			return nil, err
		}
	}
	if am.Nnet, err = ReadNnet(r); err != nil {
		return nil, err
	}
	if !r.PeekIs("<LeftContext>") {
		if am.Transitions != nil {
			return nil, r.Expect("<LeftContext>")
		}
		am.Raw = true
		return am, nil
	}
	if err = r.Expect("<LeftContext>"); err != nil {
		return nil, err
	}
	if am.LeftContext, err = r.Int(); err != nil {
		return nil, err
	}
	if err = r.Expect("<RightContext>"); err != nil {
		return nil, err
	}
	if am.RightContext, err = r.Int(); err != nil {
		return nil, err
	}
	if err = r.Expect("<Priors>"); err != nil {
		return nil, err
	}
	if am.Priors, err = r.Vector(); err != nil {
		return nil, err
	}
	if dim := am.Nnet.OutputNodeDim("output"); len(am.Priors) > 0 && len(am.Priors) != dim {
		return nil, fmt.Errorf("%s: %d priors for %d columns of the node output: %w", r.Name(), len(am.Priors), dim, ErrNetwork)
	}
	return am, nil
}

// Write writes the model: as a raw network, as an AmNnetSimple, or with its transition model before that.
func (am *AmNnetSimple) Write(w *kaldiio.Writer) error {
	if am.Raw {
		return am.Nnet.Write(w)
	}
	if am.Transitions != nil {
		if err := am.Transitions.Write(w); err != nil {
			return err
		}
	}
	if err := am.Nnet.Write(w); err != nil {
		return err
	}
	w.Token("<LeftContext>")
	w.Int(am.LeftContext)
	w.Token("<RightContext>")
	w.Int(am.RightContext)
	w.Token("<Priors>")
	w.Vector(am.Priors)
	return w.Err()
}
