package tune

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
)

// Form returns the form of a graph, see [Made]: its applies in order, with the numbers and types of what
// they read and make. The data of constants are not part of it.
func Form(g *fgraph.FunctionGraph) string {
	var b strings.Builder
	number := make(map[*fgraph.Variable]int)
	name := func(v *fgraph.Variable) int {
		n, ok := number[v]
		if !ok {
			n = len(number)
			number[v] = n
			fmt.Fprintf(&b, "%d: %v\n", n, v.Type())
		}
		return n
	}
	list := func(vars []*fgraph.Variable) {
		numbers := lists.Map(vars, name)
		fmt.Fprintln(&b, numbers)
	}
	list(g.Inputs())
	for a := range g.Ordered() {
		list(a.Inputs())
		fmt.Fprintf(&b, "%T %v\n", a.Op(), a.Op())
		list(a.Outputs())
	}
	list(g.Outputs())
	return b.String()
}
