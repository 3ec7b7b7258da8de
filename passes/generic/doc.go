// Package generic holds the passes that know no op: what they need to know of one they ask through the optional interfaces
// of package fgraph.
package generic
