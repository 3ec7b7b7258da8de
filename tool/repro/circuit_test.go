package repro_test

import (
	"strings"

	"github.com/nnopt/nnopt/fgraph"
)

// Circuits are a small dialect: gates of booleans. A value is a uint64, 64 cases at once.

// boolean is the type of all values.
type boolean struct{}

func (boolean) String() string             { return "bool" }
func (boolean) Accepts(u fgraph.Type) bool { return u == fgraph.Type(boolean{}) }

// gate is an op. A "!" at its end says that it overwrites its first input.
type gate string

func (g gate) String() string { return string(g) }

func (g gate) DestroyMap() []fgraph.Alias {
	if strings.HasSuffix(string(g), "!") {
		return []fgraph.Alias{{Output: 0, Input: 0}}
	}
	return nil
}
