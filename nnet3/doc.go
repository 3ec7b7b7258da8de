// Package nnet3 has the network of Kaldi's nnet3: nodes, the components that they compute with, and the descriptors that
// say where their inputs come from. It makes networks from config lines, reads and writes Kaldi's model files (raw
// networks and .mdl, binary and text), checks and describes them. It computes nothing: see compile and exec.
//
// A network is a list of Nodes. A component-node is preceded by a hidden node that holds its descriptor, called
// <name>_input. Cycles are legal, as are nodes used before they are defined.
//
// A network that is not being changed is safe for concurrent use.
package nnet3
