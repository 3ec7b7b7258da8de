// Package nnet3pass holds the optimizations of nnet3 computations, a pass or one family of local rewrites a file.
//
// They see a computation as values (see nnet3/lower). Kaldi's optimizations appear here under Kaldi's names. What they do in Kaldi
// that needs no pass here, because as values there is nothing left to do:
//
//   - convert_addition: an addition to zeros is an assignment. The entry only lets emission copy to where nothing was written
//     before.
//   - snip_row_ops: rows that name no source are no part of a term. The entry is about sums of ranges of rows.
//   - remove_assignments, apart from storage: reading what was copied whole gives the value that was copied.
//   - allow_left_merge, allow_right_merge: tags of the passes that let two values be one matrix.
//   - consolidation of inputs and outputs: inputs come first and outputs last in every part of a schedule.
//   - removal of memos that nobody uses: emission leaves them out.
//   - optimization of looped computations: the segments of a loop are programs of their own (lower.Chain), and what a round
//     hands on stays where the next one looks for it as far as the storage passes manage.
//
// Local rewrites propose, they never change the graph. Those that move terms between Assembles keep, for every term, the
// number of the command it came from, which guides the schedule.
package nnet3pass
