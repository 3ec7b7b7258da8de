package browsertest

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// shots is a folder for pictures of the page, among them those of the documentation.
var shots = flag.String("shots", "", "write pictures of the page to this folder")

// TestPictures makes the pictures of the documentation, docs/view-*.png, if -shots names a folder.
func TestPictures(t *testing.T) {
	if *shots == "" {
		t.Skip("-shots is not set")
	}
	b := openFile(t, recordNetwork(t, demoNetwork), window(1240, 780))
	b.key("n", "c", "c", "c", "c", "d")
	b.shot("view-network")

	p := openPlayground(t, "", window(1240, 780))
	p.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("note")?.remove(); (e => { e.value = nnopt.examples.findIndex(x => x.name === "Gradient"); e.dispatchEvent(new Event("change")) })(document.querySelector("[name=example]"))`))
	p.asked()
	p.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("note").remove()`))
	p.key("n", "n", "n")
	p.shot("playground")

	b = openFile(t, softmaxRecording(t), window(1240, 700), dark())
	b.click(`[data-node="7"]`)
	b.key("f", "n", "n", kb.ArrowRight)
	b.shot("view-expression")
}

// shot writes a picture of the window if pictures are wanted.
func (b *tab) shot(name string) {
	b.t.Helper()
	if *shots == "" {
		return
	}
	b.do(chromedp.Sleep(400 * time.Millisecond))
	text, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, reduced(picture)); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), small.Bytes(), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// reduced returns a picture in its 256 most frequent colours, which makes the file a third of its
// size.
func reduced(p image.Image) image.Image {
	count := make(map[color.RGBA]int)
	box := p.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			count[color.RGBAModel.Convert(p.At(x, y)).(color.RGBA)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), slices.Compare([]uint8{a.R, a.G, a.B}, []uint8{b.R, b.G, b.B}))
	})
	var palette color.Palette
	for _, c := range colours[:min(256, len(colours))] {
		palette = append(palette, c)
	}
	out := image.NewPaletted(box, palette)
	draw.Draw(out, box, p, box.Min, draw.Src)
	return out
}
