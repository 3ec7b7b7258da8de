// Package nnet3 has the networks of Kaldi's nnet3. It makes them from config lines, reads and
// writes Kaldi's model files (raw networks and .mdl, binary and text), checks and describes them.
// It computes nothing; packages compile and exec do.
//
// An [Nnet] is a list of nodes and a list of components. A [Node] is an input, an output, a
// component applied to an input, or a range of the columns of another node. Package descriptor says
// where an input comes from, package component what is computed. A hidden node before each
// component-node, called <name>_input, holds its descriptor. Cycles are legal, and so is using a
// node before it is defined. An [AmNnetSimple] is a network with the rest of a .mdl file.
//
// A network is safe for concurrent use as long as it is not changed.
package nnet3
