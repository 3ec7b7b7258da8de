package pipeline

import (
	"io"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// Load is [nnet3.Loader.Load] with Kaldi's component types.
func Load(name string, seed uint64) (nn *nnet3.Nnet, fromConfig bool, err error) {
	return nnet3.Loader{}.Load(name, seed)
}

// LoadFrom is [nnet3.Loader.LoadFrom] with Kaldi's component types.
func LoadFrom(r io.Reader, name string, seed uint64) (nn *nnet3.Nnet, fromConfig bool, err error) {
	return nnet3.Loader{}.LoadFrom(r, name, seed)
}

// Save writes a raw network in Kaldi's format.
func Save(w io.Writer, nn *nnet3.Nnet, binary bool) error {
	out := kaldiio.NewWriter(w, binary)
	out.Header()
	if err := nn.Write(out); err != nil {
		return err
	}
	return out.Flush()
}
