// Package decodable scores utterances: features in, a row of network output per frame (or per every third, with subsampling)
// out. It does what Kaldi's nnet3-compute does and its decoders do with a simple network (see compile.CheckSimple): an utterance is
// cut into chunks, each with the context that the network needs, and the outputs of the chunks stand below one another.
//
// A Scorer has what all utterances share: the network, in test mode and with its parameters prepared, and the programs, one
// for every shape of chunk, which are compiled when they are first needed. It is safe for concurrent use. A Worker scores one
// utterance after the other in memory of its own; any number of workers may share a Scorer. Scorer.Run has several of them
// at work on a stream of utterances and hands on what comes out in the order of what went in. Tables reads such a stream
// from Kaldi's tables.
//
// Results do not depend on the number of workers, nor on which other utterances are scored.
package decodable
