// Package tensors is the dialect of tensors to the tools: how its graphs are run, compared and made
// smaller.
package tensors
