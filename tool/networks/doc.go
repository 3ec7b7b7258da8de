// Package networks is the dialect of networks to the tools: how graphs of package lower are run,
// compared, made smaller and shown.
package networks
