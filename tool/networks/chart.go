package networks

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/tool/networks/internal/display"
)

// Sizes in pixels: two equal panels side by side.
const (
	chartWidth, chartHeight = 860, 330
	panelTop, panelBottom   = 78, 272
	panelWidth              = 360
)

// writeChart draws the memory in use, command by command: both computations on one
// scale on the left, the optimized one on its own scale on the right. The SVG is
// self-contained and suits light and dark pages.
func writeChart(w io.Writer, before, after *computation.Computation, query string) error {
	a, b := before.Counts(), after.Counts()
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13">
<style>
text { fill: #2a2f36 } .faint { fill: #6b7480 } .axis { stroke: #9aa4b0; fill: none } .before { fill: #b9c6d6 } .after { fill: #2f6db5 } .paper { fill: #ffffff }
@media (prefers-color-scheme: dark) { text { fill: #dde3ea } .faint { fill: #8d97a3 } .before { fill: #435366 } .after { fill: #6ea2dd } .paper { fill: #14181c } }
</style>
<rect class="paper" width="%d" height="%d" rx="6"/>
<text x="40" y="30" font-size="16" font-weight="600">Memory in use, command by command</text>
`, chartWidth, chartHeight, chartWidth, chartHeight)
	legend := func(x int, class, text string) {
		fmt.Fprintf(&s, "<rect class=\"%s\" x=\"%d\" y=\"45\" width=\"11\" height=\"11\"/><text x=\"%d\" y=\"55\">%s</text>\n", class, x, x+17, text)
	}
	legend(40, "before", fmt.Sprintf("as compiled: %s commands, peak %s", display.Thousands(a.Commands), display.Bytes(a.MaxMemoryBytes)))
	legend(460, "after", fmt.Sprintf("optimized (%s): %s commands, peak %s", html.EscapeString(query), display.Thousands(b.Commands), display.Bytes(b.MaxMemoryBytes)))
	area(&s, 40, "before", slices.Collect(before.LiveBytes()), a.Commands, a.MaxMemoryBytes)
	area(&s, 40, "after", slices.Collect(after.LiveBytes()), a.Commands, a.MaxMemoryBytes)
	axes(&s, 40, a.Commands, a.MaxMemoryBytes, "both, on one scale")
	area(&s, 460, "after", slices.Collect(after.LiveBytes()), b.Commands, b.MaxMemoryBytes)
	axes(&s, 460, b.Commands, b.MaxMemoryBytes, "the small corner on the left, enlarged")
	s.WriteString("</svg>\n")
	_, err := io.WriteString(w, s.String())
	return err
}

// area draws the memory after each command as steps. The panel spans the given
// number of commands and bytes.
func area(s *strings.Builder, left int, class string, live []int64, commands int, most int64) {
	x := func(i int) float64 { return float64(left) + panelWidth*float64(i)/float64(max(1, commands)) }
	y := func(v int64) float64 {
		return panelBottom - (panelBottom-panelTop)*float64(v)/float64(max(1, most))
	}
	fmt.Fprintf(s, `<path class="%s" d="M%d %d`, class, left, panelBottom)
	// Memory changes at few commands. A path with a point for each of thousands would be a large
	// file.
	last := math.NaN()
	for i, v := range live {
		if h := y(v); h != last {
			fmt.Fprintf(s, "H%.1fV%.1f", x(i), h)
			last = h
		}
	}
	fmt.Fprintf(s, "H%.1fV%dZ\"/>\n", x(len(live)), panelBottom)
}

// axes draws the frame of a panel and labels its ends.
func axes(s *strings.Builder, left, commands int, most int64, caption string) {
	fmt.Fprintf(s, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", left, panelTop, panelBottom, left+panelWidth)
	fmt.Fprintf(s, "<text class=\"faint\" x=\"%d\" y=\"%d\">%s</text>\n", left+5, panelTop+4, display.Bytes(most))
	fmt.Fprintf(s, "<text class=\"faint\" x=\"%d\" y=\"%d\">0</text>\n", left, panelBottom+17)
	fmt.Fprintf(s, "<text class=\"faint\" x=\"%d\" y=\"%d\" text-anchor=\"end\">command %s</text>\n", left+panelWidth, panelBottom+17, display.Thousands(commands))
	fmt.Fprintf(s, "<text class=\"faint\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", left+panelWidth/2, panelBottom+38, caption)
}
