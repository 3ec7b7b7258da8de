//go:build !amd64 && !arm64

package kernel

// supportedQuantSets returns the sets that this processor can execute, the best last.
func supportedQuantSets() []quantSet { return onlyGo[:] }

var onlyGo = [...]quantSet{quantGo}

func (s quantSet) tiles(t *quantTile, p Precision)        { t.tilesGo() }
func (s quantSet) quantize(q *quantizing, words bool)     { q.quantizeGo(words) }
func (quantSet) rowProducts(*byte, uintptr, int, []int32) {}
