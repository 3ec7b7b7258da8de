package decodable

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/nnet3"
)

// TestCut writes a batch as first+rows×sequences, followed by an unusual context in brackets.
func TestCut(t *testing.T) {
	plain := cutter{rows: 10, left: 3, right: 2, initial: 3, final: 2, max: 1}
	batches := plain
	batches.max = 8
	edges := batches
	edges.initial, edges.final = 0, 1
	for _, c := range []struct {
		name   string
		cutter cutter
		rows   int
		want   string
	}{
		{"nothing", plain, 0, ""},
		{"one row", plain, 1, "0+1×1"},
		{"a chunk", plain, 10, "0+10×1"},
		{"a row more", plain, 11, "0+10×1 10+1×1"},
		{"one by one", plain, 30, "0+10×1 10+10×1 20+10×1"},
		{"powers of two", batches, 75, "0+10×4 40+10×2 60+10×1 70+5×1"},
		{"as many as allowed", batches, 200, "0+10×8 80+10×8 160+10×4"},
		{"both edges in one chunk", edges, 10, "0+10×1[0 1]"},
		{"both edges", edges, 20, "0+10×1[0 2] 10+10×1[3 1]"},
		{"edges and a middle", edges, 45, "0+10×1[0 2] 10+10×2 30+10×1 40+5×1[3 1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, b := range c.cutter.cut(c.rows, nil) {
				text := fmt.Sprintf("%d+%d×%d", b.first, b.rows, b.sequences)
				if b.left != plain.left || b.right != plain.right {
					text += fmt.Sprintf("[%d %d]", b.left, b.right)
				}
				got = append(got, text)
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestCutCovers: chunks are adjacent, none is too long, and only those at the edges have special
// contexts.
func TestCutCovers(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		draw := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
		c := cutter{rows: draw("chunk", 1, 20), left: draw("left", 0, 3), right: draw("right", 0, 3), initial: draw("initial", 0, 3), final: draw("final", 0, 3), max: draw("max", 1, 9)}
		rows := draw("rows", 0, 300)
		next := 0
		for _, b := range c.cut(rows, nil) {
			if b.sequences > c.max || b.sequences&(b.sequences-1) != 0 {
				t.Fatalf("%d chunks at once, at most %d", b.sequences, c.max)
			}
			for range b.sequences {
				want := shape{left: c.left, right: c.right, rows: min(c.rows, rows-next), sequences: b.sequences}
				if next == 0 {
					want.left = c.initial
				}
				if next+want.rows == rows {
					want.right = c.final
				}
				if b.shape != want {
					t.Fatalf("the chunk at row %d is %+v, want %+v", next, b.shape, want)
				}
				next += b.rows
			}
		}
		if next != rows {
			t.Fatalf("%d rows of %d", next, rows)
		}
	})
}

func TestIsRecurrent(t *testing.T) {
	const components = "component name=a type=AffineComponent input-dim=2 output-dim=2\n"
	for _, c := range []struct {
		name, nodes string
		want        bool
	}{
		{"a layer", "component-node name=a component=a input=input\noutput-node name=output input=a", false},
		{"two ways", "component-node name=a component=a input=input\ncomponent-node name=b component=a input=Sum(a, Offset(a, -1))\noutput-node name=output input=Sum(a, b)", false},
		{"of itself", "component-node name=a component=a input=Sum(input, IfDefined(Offset(a, -1)))\noutput-node name=output input=a", true},
		{"in a round", "component-node name=a component=a input=Sum(input, IfDefined(Offset(b, -1)))\ncomponent-node name=b component=a input=a\noutput-node name=output input=b", true},
	} {
		nn, err := nnet3.ParseConfig(strings.NewReader("input-node name=input dim=2\n"+components+c.nodes), c.name, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := isRecurrent(nn); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
