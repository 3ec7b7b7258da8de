// Package nnet3pass holds the optimizations of nnet3 computations, a pass or a family of local
// rewrites per file.
//
// Passes are the graph rewriters and Rules the local rewrites. Package passes registers them, with
// tags, in the standard database; a query selects them there by name. They see a computation as
// values (see nnet3/lower) and know nothing about commands or memory, except for the storage
// passes, which decide where values live.
//
// Kaldi's optimizations have Kaldi's names here. Parts of them need no pass, because there is
// nothing left to do on values:
//
//   - convert_addition: an addition to zeros is an assignment. The entry only lets emission copy
//     to a place where nothing was written before.
//   - snip_row_ops: a term has no rows without a source. The entry is about sums of ranges of rows.
//   - remove_assignments, apart from storage: reading a whole copy gives the value that was copied.
//   - allow_left_merge, allow_right_merge: tags of the passes that let two values share a matrix.
//   - consolidation of inputs and outputs: a schedule has inputs first and outputs last.
//   - removal of memos that nothing uses: emission leaves them out.
//   - optimization of looped computations: the segments of a loop are separate programs
//     (lower.Chain), and the storage passes try to leave what one round hands on where the next
//     one looks for it.
//
// Rules propose replacements and never change the graph. Rules that move terms between Assembles
// keep the number of the command that each term came from, because it guides the schedule.
//
// Rewriters have no state of their own: they may run in several goroutines at once, on a graph
// each.
package nnet3pass
