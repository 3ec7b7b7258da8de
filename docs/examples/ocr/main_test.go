package main

import (
	"fmt"
	"image"
	"image/color"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// written returns a picture of lines of text.
func written(t *testing.T, lines ...string) *image.RGBA {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		t.Fatal(err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: 28, DPI: 72})
	if err != nil {
		t.Fatal(err)
	}
	picture := image.NewRGBA(image.Rect(0, 0, 640, 40+60*len(lines)))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(color.RGBA{250, 248, 240, 255}), image.Point{}, draw.Src)
	d := font.Drawer{Dst: picture, Src: image.NewUniform(color.RGBA{20, 20, 60, 255}), Face: face}
	for i, text := range lines {
		d.Dot = fixed.P(30, 60+60*i)
		d.DrawString(text)
	}
	return picture
}

// TestRead: the real models read a picture, also one that is upside down, and find nothing in an empty one.
func TestRead(t *testing.T) {
	r, err := newReader("../models")
	if err != nil {
		t.Skip("left out: the models, which ../fetch.sh fetches: ", err)
	}
	defer r.close()
	want := []string{"Reading text in a picture", "Invoice 2026-11-28", "Total: 1,234.50 EUR"}
	picture := written(t, want...)
	turned := image.NewRGBA(picture.Bounds())
	draw.Draw(turned, turned.Bounds(), upsideDown{picture, picture.Bounds()}, image.Point{}, draw.Src)
	back := slices.Clone(want)
	slices.Reverse(back)
	for _, test := range []struct {
		picture image.Image
		want    []string
	}{{picture, want}, {turned, back}, {image.NewRGBA(image.Rect(0, 0, 100, 60)), nil}, {image.NewGray(image.Rect(0, 0, 1, 3)), nil}, {picture.SubImage(image.Rect(0, 80, 640, 220)), want[1:]}} {
		lines, err := r.read(t.Context(), test.picture)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range lines {
			got = append(got, l.text)
		}
		spaces := strings.NewReplacer(" ", "") // which the models, of China, miss at times
		if spaces.Replace(strings.Join(got, "\n")) != spaces.Replace(strings.Join(test.want, "\n")) {
			t.Errorf("read %q, want %q", got, test.want)
		}
	}
}

// TestBoxes: likely pixels that touch are a box, which is larger than they are; boxes are in the order of reading.
func TestBoxes(t *testing.T) {
	const w, h = 60, 30
	likely := make([]float32, w*h)
	fill := func(x0, y0, x1, y1 int, v float32) {
		for y := y0; y < y1; y++ {
			for x := x0; x < x1; x++ {
				likely[y*w+x] = v
			}
		}
	}
	fill(40, 4, 55, 9, 0.9) // right, and a little higher than
	fill(5, 5, 25, 10, 0.9) // left
	fill(5, 20, 15, 26, 0.9)
	fill(30, 20, 40, 26, 0.4) // unlikely in all
	fill(50, 20, 52, 22, 0.9) // small
	if got := fmt.Sprint(boxes(likely, w, h)); got != "[(2,2)-(28,13) (37,1)-(58,12) (2,17)-(18,29)]" {
		t.Error(got)
	}
}

// TestText: a letter that is seen twice is one, unless there was none between.
func TestText(t *testing.T) {
	r := &reader{letters: []string{"", "a", "b", " "}}
	var likely []float32
	for _, i := range []int{0, 1, 1, 0, 1, 2, 2, 3, 3, 1, 0} {
		row := []float32{0.1, 0.1, 0.1, 0.1}
		row[i] = 0.7
		likely = append(likely, row...)
	}
	if text, score := r.text(likely, 4); text != "aab a" || score < 0.699 || score > 0.701 {
		t.Errorf("%q, %v", text, score)
	}
}
