// Package networks is the dialect of nnet3 networks for package tool. It says how graphs of package
// nnet3/lower are run, compared, made smaller and shown, and brings the verbs that only networks have.
package networks
