// Package nnet3pass holds the optimizations of nnet3 computations, a pass or one family of local rewrites a file.
//
// They see a computation as values (see nnet3/lower). Kaldi's optimizations appear here under Kaldi's names where a pass does
// what they do. Some need no pass, because as values there is nothing left to do:
//
//   - convert_addition: an addition to zeros is an assignment. Emission copies where nothing was written before, and adds
//     where something was.
//   - snip_row_ops: rows that name no source are no part of a term, so there is nothing to snip.
//   - consolidation of inputs and outputs: inputs come first and outputs last in every part of a schedule.
//   - the part of remove_assignments that does not concern storage: reading what was copied whole gives the value that was
//     copied.
//
// Local rewrites propose, they never change the graph. Those that move terms between Assembles keep, for every term, the
// number of the command it came from, which guides the schedule.
package nnet3pass
