// Package cluster scores corpora on many machines. It cuts a script of features into shards, scores
// each shard as nnopt run does, and joins the results. It is an Apache Beam pipeline: by default it
// runs in this process, and by Beam's own flags on any portable runner.
//
// A [Job] says what to score. [Score] plans the job, runs the pipeline and returns a [Summary].
// Everything that lasts is in the directory of the job:
//
//	out.scp           the rows of every utterance, in the order of the features
//	failures.txt      utterances that were not scored: utterance, shard, reason
//	summary.json      the Summary
//	plan.jsonl        the shards, and which lines of the script are in them
//	utt2num_frames    the frames of each line, once they are known
//	job.json          the model and the options that rows depend on
//	shards/ID.list    what a shard consists of
//	shards/ID.json    the manifest of a shard that is complete
//	shards/ID.*.ark   its rows
//	shards/ID.*.scp   the script of those
//
// The ID of a shard is a digest of its utterances, of the model and of all options that can change
// a row. A shard is complete if there is a manifest for its ID. The name of an archive contains a
// digest of its bytes, and the manifest comes into being after it. So a shard may be scored twice,
// even at the same time: the results are the same files.
//
// The package is no decoder, and it moves no files: the workers must see the files of the job under
// the names that it has here, on a shared file system for example. Names with a scheme, such as
// gs://bucket/feats.ark, are those of the file systems that are registered with Beam's package
// filesystem; the command links gs and s3.
//
// Score may be called by one goroutine at a time, because Beam's flags belong to the process.
package cluster
