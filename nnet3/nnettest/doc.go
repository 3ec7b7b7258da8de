// Package nnettest makes networks and requests at random, for tests that hold two ways to compute the same thing against each other.
//
// New makes a Case from a seed and from nothing else. The networks are of the families that Kaldi tests its optimizer with
// (Families lists them), and of some that its recipes are made of: factored layers with bypass, fast LSTMs, GRUs, dropout. Widths,
// offsets, depth, numbers of sequences and frames are random, and so is whether derivatives are asked for. All are small:
// a case takes milliseconds.
//
// The package makes no numbers: inputs are for the caller (see exec/pipeline, RandomValues), and so are the statistics of batch
// normalization where Case.TestMode asks for them (Calibrate).
package nnettest
