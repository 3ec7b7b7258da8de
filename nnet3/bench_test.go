package nnet3

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// layered returns a network of layers of the given number of columns.
func layered(b *testing.B, layers, dim int) *Nnet {
	b.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "input-node name=l0 dim=%d\n", dim)
	for i := 1; i <= layers; i++ {
		fmt.Fprintf(&text, "component name=l%d type=AffineComponent input-dim=%d output-dim=%d\ncomponent-node name=l%d component=l%d input=l%d\n", i, dim, dim, i, i, i-1)
	}
	fmt.Fprintf(&text, "output-node name=output input=l%d\n", layers)
	nn, err := ParseConfig(strings.NewReader(text.String()), "bench", 1)
	if err != nil {
		b.Fatal(err)
	}
	return nn
}

// BenchmarkReadNnet reads networks of a few large components and of many small ones, from sources
// of known and unknown length.
func BenchmarkReadNnet(b *testing.B) {
	for _, c := range []struct{ layers, dim int }{{8, 1024}, {10, 8}, {1000, 8}, {20000, 8}} {
		nn := layered(b, c.layers, c.dim)
		for _, binary := range []bool{true, false} {
			if !binary && c.dim > 8 {
				continue
			}
			var out bytes.Buffer
			w := kaldiio.NewWriter(&out, binary)
			w.Header()
			if err := nn.Write(w); err != nil {
				b.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				b.Fatal(err)
			}
			for _, known := range []bool{true, false} {
				b.Run(fmt.Sprintf("layers=%d/dim=%d/binary=%v/known=%v", c.layers, c.dim, binary, known), func(b *testing.B) {
					b.SetBytes(int64(out.Len()))
					b.ReportAllocs()
					for b.Loop() {
						var src io.Reader = bytes.NewReader(out.Bytes())
						if !known {
							src = io.MultiReader(src)
						}
						r, err := kaldiio.NewReader(src, "")
						if err != nil {
							b.Fatal(err)
						}
						if _, err := ReadNnet(r); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
