// Package nnettest tests the optimizer on random networks and requests. It has only tests.
//
// A case is made from a seed alone. The networks are of the families that Kaldi tests its optimizer
// with, and of some that its recipes consist of: factored layers with bypass, fast LSTMs, GRUs,
// dropout. The last family, "mixed", stacks layers of all kinds on random descriptors of those
// below. Widths, offsets, depth, numbers of sequences and frames are random, and so is whether
// derivatives are wanted. All are small: a case takes milliseconds.
//
// The tests compare networks, and computations without a network (package computationtest), as
// compiled and as optimized, under +fast_run and under queries that leave out up to three entries
// and a tag at random. For a long run, say how many cases and the first seed:
//
//	go test ./exec/pipeline/nnettest -timeout 0 -run 'Optimize|Computations' -random 10000 -queries 8 -seed 1000000
//
// TestQuantized, TestQuantizedBits and TestQuantizedStreams compute wider networks in integers, with
// -random and -seed as above: alone and in company, with every set of kernels, with frames that are not
// finite, and as live streams.
package nnettest
