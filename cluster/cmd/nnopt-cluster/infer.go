package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/nnopt/nnopt/cluster"
	"github.com/nnopt/nnopt/tool"
)

func inferVerb() tool.Verb {
	return tool.Verb{
		Name:     "infer",
		Args:     "MODEL RECORDS OUT",
		Synopsis: "run an ONNX model over records, on one machine or many",
		Detail: `
MODEL is an ONNX model with its weights inside, RECORDS a file with a JSON object a line, or of Parquet if its name ends in .parquet, and
OUT a directory. Fields with the names of inputs are nested lists of numbers; where the model leaves the first size of an input open, a
record may be a row, without that axis: {"id": 7, "input_ids": [101, 2023, 102]}. OUT/records.jsonl, or records.parquet, has the records in
their order, with outputs in place of inputs. One that can't be computed has the field "error", and the exit status is 1 then.

Shards that are complete are not computed again when the job is run again with the same OUT: after an interrupt, or with more records.
Without --runner the pipeline runs in this process (Prism). Beam's own flags select another runner; machines that work must see all files
under the same names.`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			var j cluster.Inference
			passes := tool.DeclarePasses(cfg, fs)
			fs.IntVar(&j.RecordsPerShard, "records-per-shard", cluster.DefaultRecordsPerShard, "Most records of a shard")
			fs.IntVar(&j.Rows, "rows", 32, "Most records that are computed together")
			verbose := fs.Bool("verbose", false, "Print what Beam logs")
			flag.CommandLine.VisitAll(func(b *flag.Flag) { declareBeam(fs, b) })
			return func(ctx context.Context, c *tool.Console, args []string) (err error) {
				if len(args) != 3 {
					return tool.Usagef("MODEL RECORDS OUT expected, not %d arguments", len(args))
				}
				j.Model, j.Records, j.Out = args[0], args[1], args[2]
				if j.Query, _, err = passes(); err != nil {
					return err
				}
				return infer(ctx, c, j, *verbose)
			}
		},
	}
}

// infer runs the job.
func infer(ctx context.Context, c *tool.Console, j cluster.Inference, verbose bool) error {
	start := time.Now()
	leave, err := initBeam(verbose)
	if err != nil {
		return err
	}
	defer leave()
	s, err := cluster.Infer(ctx, j)
	switch {
	case errors.Is(err, cluster.ErrSubmitted):
		c.Say("%v", err)
		return nil
	case errors.Is(err, cluster.ErrJob):
		return tool.Usagef("%w", err)
	case err != nil:
		return err
	}
	c.Say("%d records in %d shards, %d of them complete before; %.2f s", s.Records, s.Shards, s.SkippedShards, time.Since(start).Seconds())
	if s.Failed > 0 {
		return fmt.Errorf("%d of %d records failed; the field error of theirs in %s says why", s.Failed, s.Records, s.Results)
	}
	return nil
}
