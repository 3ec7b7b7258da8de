// Package refcase reads and runs reference cases: small problems with Kaldi's answers. It compares
// our numbers with Kaldi's, and reports the sizes of both computations. It does not make cases.
//
// A case is a folder:
//
//	case.json                 the request, and the size of Kaldi's computation before and after its optimizer
//	model.raw                 the network
//	input_<node>.mat          an input of the request, a row for every index
//	output_<node>.mat         Kaldi's output
//	output_deriv_<node>.mat   with a backward pass: the derivative of an output, which is an input
//	input_deriv_<node>.mat    with a backward pass: Kaldi's derivative of an input with has_deriv
//	gradient.raw              with a backward pass: a network with Kaldi's gradient for parameters, if requested
//
// The file kaldi_spread.json in the parent folder, or in its parent, says by the name of the case
// how far Kaldi is from itself (spread):
//
//	{"xvector_train": {"forward": 4.3e-06, "backward": 0.0023}, …}
//
// Load reads a case, LoadDir reads one with its spread, and Case.Run runs it. A loaded Case does
// not change, and is safe for concurrent use.
package refcase
