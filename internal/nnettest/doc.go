// Package nnettest makes networks and requests at random, for tests that hold two ways to compute
// the same thing against each other.
//
// New makes a Case from a seed and from nothing else. The networks are of the families that Kaldi
// tests its optimizer with (Families lists them), and of some that its recipes are made of:
// factored layers with bypass, fast LSTMs, GRUs, dropout. The last family, "mixed", puts layers of
// all kinds on top of whatever descriptors make of those below. Widths, offsets, depth, numbers of
// sequences and frames are random, and so is whether derivatives are asked for. All are small: a
// case takes milliseconds.
//
// The package makes no numbers: inputs are for the caller (see exec/pipeline, RandomValues), and so
// are the statistics of batch normalization where Case.TestMode asks for them (Calibrate).
//
// The tests of the package hold the optimizer against what is compiled: networks, and computations
// without a network (internal/computationtest), run under +fast_run and under queries that leave
// out up to three entries and a tag at random. A run at length says how many, from which seed on:
//
//	go test ./internal/nnettest -timeout 0 -run 'Optimize|Computations' -random 10000 -queries 8 -seed 1000000
package nnettest
