package tensors

import (
	"fmt"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/tensor/array"
)

// tensorOps returns names of ops of tensors, with parameters of every kind.
var tensorOps = sync.OnceValue(func() []string {
	names := strings.Fields("argmax argmax{axis=0} argmax{axis=1} Shape_i{0} Shape_i{1} Reshape{1} Reshape{2} Reshape{0} Reshape{3} Join{0} Join{1} Join{2}" +
		" MakeVector{float64} MakeVector{int64} MakeVector{float32} AllocEmpty{float64} AdvancedSubtensor1 AdvancedIncSubtensor1" +
		" ExtractDiag{0,0,1} ExtractDiag{1,0,1} ExtractDiag{-1,1,0} ExtractDiag{0,0,2} AdvancedSetSubtensor1 AdvancedSubtensor{2} AdvancedIncSubtensor{2} AdvancedSetSubtensor{2}")
	for r := range array.NumReductions {
		for _, axes := range []string{"", "{axis=0}", "{axis=1}", "{axis=0,1}", "{axis=2}", "{axis=1,2}", "{axis=0,2}", "{axis=0,1,2}"} {
			names = append(names, r.String()+axes)
		}
	}
	for o := range array.NumOpcodes {
		if o != array.Cast {
			names = append(names, o.String())
		}
	}
	for _, d := range dtypes {
		names = append(names, fmt.Sprintf("cast{%v}", d))
	}
	for _, order := range shuffles() {
		names = append(names, "DimShuffle{"+order+"}")
	}
	for _, op := range []string{"Subtensor", "IncSubtensor", "SetSubtensor"} {
		for _, i := range indexes {
			names = append(names, op+"{"+i+"}")
		}
	}
	return names
})

// indexes select in of one to three dimensions. An underscore is an input.
var indexes = []string{
	"0", "1:", ":2", "::-1", "_", "-1", "1:3", "::2", "_:", ":_", "_:_", ":-1", "-2:", "2", "0:0", "3::-1", "-1::-2", "1:0:-1", ":1", "2:", "5:", ":",
	"_:_:-1", "_::2", "::3", "0,1", "1:,0", ":,0", "0,:", ":,1:", "_,_", "1:,:2", "::-1,::-1", ":,_", "_,1:", "0,0,0", ":,:,0", "1:,_,::-1", "0:2,1:2",
}

// shuffles are the orders of DimShuffle of up to three dimensions, with dimensions that are dropped
// or added.
func shuffles() []string {
	list := []string{"", "x", "x,x", "0", "x,0", "0,x"}
	for _, order := range []string{"0,1", "1,0", "0", "1"} {
		list = append(list, order)
		dims := strings.Split(order, ",")
		for at := range len(dims) + 1 {
			with := strings.Join(append(append(append([]string{}, dims[:at]...), "x"), dims[at:]...), ",")
			list = append(list, with)
		}
	}
	return append(list, "x,x,0,1", "0,x,1,x", "0,1,2", "0,2,1", "1,0,2", "1,2,0", "2,0,1", "2,1,0", "0,2", "1,2", "2,0", "2", "x,0,1,2", "1,x,0,2", "2,1,0,x", "x,x,0")
}
