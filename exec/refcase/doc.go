// Package refcase reads reference cases, small problems with the answers that Kaldi gives, and holds the engine against them:
// the numbers must agree, and the size of the computation stands beside Kaldi's.
//
// A case is a folder:
//
//	case.json                 the request, and the size of Kaldi's computation before and after its own optimizer
//	model.raw                 the network
//	input_<node>.mat          a matrix for every input of the request, a row for every index
//	output_<node>.mat         Kaldi's answer
//	output_deriv_<node>.mat   with a backward pass: the derivative that is handed in for an output
//	input_deriv_<node>.mat    with a backward pass: Kaldi's derivative of an input whose has_deriv is true
//	gradient.raw              with a backward pass: a network whose parameters are the gradient, if the request wants one
//
// The file kaldi_spread.json in the folder above, or in the one above that, says how far Kaldi is from itself (Spread), by the name of
// the case:
//
//	{"xvector_train": {"forward": 4.3e-06, "backward": 0.0023}, …}
//
// Load reads a case, LoadDir one with its spread, Case.Run runs it. A Case is not changed once it is loaded, and then safe for concurrent use.
package refcase
