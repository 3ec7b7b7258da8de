package fgraph

import (
	"bufio"
	"fmt"
	"html"
	"io"
)

// Sizes of the drawing of [FunctionGraph.WriteHTML], in pixels.
const (
	htmlBoxWidth  = 190
	htmlBoxHeight = 26
	htmlGapX      = 20
	htmlGapY      = 44
	htmlMostRunes = 24 // in a label; a tooltip shows the whole text
)

// htmlBox is an apply or a leaf in the drawing.
type htmlBox struct {
	layer, slot int
	class       string
	text        string
}

func (b htmlBox) x() int { return 10 + b.slot*(htmlBoxWidth+htmlGapX) }
func (b htmlBox) y() int { return 10 + b.layer*(htmlBoxHeight+htmlGapY) }

// WriteHTML writes a self-contained HTML page with a drawing of the graph, in which applies are
// below their inputs. It returns an error of w, or one that wraps [ErrCycle].
func (g *FunctionGraph) WriteHTML(w io.Writer, title string) error {
	order, err := g.Toposort()
	if err != nil {
		return err
	}
	d := htmlDrawing{boxes: map[any]*htmlBox{}}
	for _, v := range g.inputs {
		d.place(v, 0, "input", leafString(v))
	}
	for _, a := range order {
		layer := 1
		for _, v := range a.inputs {
			if v.owner == nil && d.boxes[v] == nil {
				d.place(v, 0, "constant", leafString(v))
			}
			layer = max(layer, d.of(v).layer+1)
		}
		d.place(a, layer, "apply", a.op.String())
	}
	for _, v := range g.outputs {
		if v.owner == nil && d.boxes[v] == nil {
			d.place(v, 0, "constant", leafString(v))
		}
	}
	return d.write(w, g, order, title)
}

type htmlDrawing struct {
	boxes map[any]*htmlBox // by apply or leaf
	all   []*htmlBox
	slots []int // number of boxes by layer
}

func (d *htmlDrawing) place(what any, layer int, class, text string) {
	for len(d.slots) <= layer {
		d.slots = append(d.slots, 0)
	}
	b := &htmlBox{layer, d.slots[layer], class, text}
	d.slots[layer]++
	d.boxes[what] = b
	d.all = append(d.all, b)
}

// of returns the box of a leaf, or of the apply that computes v.
func (d *htmlDrawing) of(v *Variable) *htmlBox {
	if v.owner != nil {
		return d.boxes[v.owner]
	}
	return d.boxes[v]
}

func (d *htmlDrawing) write(w io.Writer, g *FunctionGraph, order []*Apply, title string) error {
	widest := 1
	for _, n := range d.slots {
		widest = max(widest, n)
	}
	buf := bufio.NewWriter(w)
	fmt.Fprintf(buf, `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>%s</title><style>
body { font: 13px sans-serif; margin: 1em }
rect { fill: #eef3fb; stroke: #5b7db1 } .input rect { fill: #eaf6ea; stroke: #5b9a5b } .constant rect { fill: #f5f5f5; stroke: #999 }
.output rect { stroke-width: 3 } line { stroke: #888 } text { font: 12px monospace }
</style></head><body><h1>%[1]s</h1>
<p>Applies: %d. What is computed stands below what it is computed from; outputs have thick borders.</p>
<svg width="%d" height="%d">
`, html.EscapeString(title), len(order), 20+widest*(htmlBoxWidth+htmlGapX), 20+len(d.slots)*(htmlBoxHeight+htmlGapY))
	for _, a := range order {
		to := d.boxes[a]
		for i, v := range a.inputs {
			from := d.of(v)
			// The edges of the inputs end side by side.
			x := to.x() + (i+1)*htmlBoxWidth/(len(a.inputs)+1)
			fmt.Fprintf(buf, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", from.x()+htmlBoxWidth/2, from.y()+htmlBoxHeight, x, to.y())
		}
	}
	outputs := map[*htmlBox]bool{}
	for _, v := range g.outputs {
		outputs[d.of(v)] = true
	}
	for _, b := range d.all {
		class, label := b.class, []rune(b.text)
		if outputs[b] {
			class += " output"
		}
		if len(label) > htmlMostRunes {
			label = append(label[:htmlMostRunes-1:htmlMostRunes-1], '…')
		}
		fmt.Fprintf(buf, "<g class=\"%s\"><title>%s</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/><text x=\"%d\" y=\"%d\">%s</text></g>\n",
			class, html.EscapeString(b.text), b.x(), b.y(), htmlBoxWidth, htmlBoxHeight, b.x()+4, b.y()+17, html.EscapeString(string(label)))
	}
	fmt.Fprint(buf, "</svg></body></html>\n")
	return buf.Flush()
}
