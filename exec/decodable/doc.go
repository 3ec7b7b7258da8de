// Package decodable scores utterances: it turns features into a row of network output per frame, or
// per every third with subsampling. It does what Kaldi's nnet3-compute does, and Kaldi's decoders
// with a simple network (see compile.CheckSimple): it cuts an utterance into chunks, each with the
// context that the network needs, and joins the outputs of the chunks. It does not decode.
//
// A Scorer holds what all utterances share: the network, in test mode and with packed parameters,
// and a program for every shape of chunk, compiled when it is first needed. It is safe for
// concurrent use. Scorer.Run scores a stream of utterances with several workers, and returns the
// results in order; Scorer.RunRows hands them out piece by piece. Tables reads such a stream from
// Kaldi's tables, for one goroutine.
//
// A Streamer holds what live streams share. A Stream takes frames as they come and gives rows as
// soon as they can be computed, as Kaldi's looped decodables do, in the goroutine of its caller. A
// Batcher computes many streams together, and measures how many it holds. Streamer.Run scores whole
// utterances as streams.
//
// Results depend neither on the number of workers nor on other utterances or
// streams.
package decodable
