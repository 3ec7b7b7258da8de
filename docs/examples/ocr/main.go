// Command ocr reads the text in pictures with three models of PaddleOCR: one finds lines of text, one finds those that
// are upside down, and one reads them.
//
//	ocr -models ../models picture.png
//
// It reads PNG, JPEG, GIF, WebP, TIFF and BMP. Lines are horizontal, give or take some degrees.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"log"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	_ "golang.org/x/image/bmp"
	"golang.org/x/image/draw"
	_ "golang.org/x/image/tiff"
	_ "golang.org/x/image/webp"

	"github.com/nnopt/nnopt/exec/model"
)

func main() {
	folder := flag.String("models", "models", "where ch_PP-OCRv4_det_infer.onnx and the others are")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := newReader(*folder)
	if err != nil {
		log.Fatal(err)
	}
	defer r.close()
	for _, name := range flag.Args() {
		f, err := os.Open(name)
		if err != nil {
			log.Fatal(err)
		}
		picture, _, err := image.Decode(f)
		if f.Close(); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
		lines, err := r.read(ctx, picture)
		if err != nil {
			log.Fatalf("%s: %v", name, err)
		}
		for _, l := range lines {
			fmt.Printf("%v %.2f %s\n", l.box, l.score, l.text)
		}
	}
}

// A line is a line of text in a picture.
type line struct {
	box   image.Rectangle
	text  string
	score float32 // the mean probability of its letters
}

// A reader reads pictures.
type reader struct {
	find, turn, spell *model.Model
	letters           []string
}

func newReader(folder string) (*reader, error) {
	r := new(reader)
	for file, m := range map[string]**model.Model{"ch_PP-OCRv4_det_infer.onnx": &r.find, "ch_ppocr_mobile_v2.0_cls_infer.onnx": &r.turn, "ch_PP-OCRv4_rec_infer.onnx": &r.spell} {
		var err error
		if *m, err = model.Open(filepath.Join(folder, file)); err != nil {
			return nil, err
		}
	}
	keys, err := os.ReadFile(filepath.Join(folder, "ppocr_keys_v1.txt"))
	if err != nil {
		return nil, err
	}
	// The first one of the model means no letter, and the last one is a space.
	r.letters = append(append([]string{""}, strings.Split(strings.TrimRight(string(keys), "\n"), "\n")...), " ")
	return r, nil
}

func (r *reader) close() {
	r.find.Close()
	r.turn.Close()
	r.spell.Close()
}

// read returns the lines of a picture from top to bottom.
func (r *reader) read(ctx context.Context, picture image.Image) ([]line, error) {
	const longest = 960 // pixels of a side; text of 10 pixels is still found
	size := picture.Bounds().Size()
	scale := min(1, longest/float64(max(size.X, size.Y)))
	side := func(n int) int { return max(32, int(math.Round(float64(n)*scale/32))*32) }
	w, h := side(size.X), side(size.Y)
	likely, _, err := run(ctx, r.find, tensor(picture, picture.Bounds(), w, h, w, [3]float32{0.485, 0.456, 0.406}, [3]float32{0.229, 0.224, 0.225}))
	if err != nil {
		return nil, err
	}
	var lines []line
	for _, b := range boxes(likely, w, h) {
		at := picture.Bounds().Min
		b = image.Rect(b.Min.X*size.X/w, b.Min.Y*size.Y/h, b.Max.X*size.X/w, b.Max.Y*size.Y/h).Add(at).Intersect(picture.Bounds())
		if b.Empty() {
			continue
		}
		l, err := r.line(ctx, picture, b)
		if err != nil {
			return nil, err
		}
		if l.text != "" && l.score >= 0.5 {
			lines = append(lines, l)
		}
	}
	return lines, nil
}

var half = [3]float32{0.5, 0.5, 0.5}

// line reads a line, whichever way up it is.
func (r *reader) line(ctx context.Context, picture image.Image, box image.Rectangle) (line, error) {
	const height = 48 // of what the models see
	width := max(1, box.Dx()*height/box.Dy())
	turned, _, err := run(ctx, r.turn, tensor(picture, box, min(width, 192), height, 192, half, half))
	if err != nil {
		return line{}, err
	}
	x := tensor(picture, box, width, height, (width+31)/32*32, half, half)
	if turned[1] > 0.9 {
		x = tensor(upsideDown{picture, box}, box, width, height, (width+31)/32*32, half, half)
	}
	letters, n, err := run(ctx, r.spell, x)
	if err != nil {
		return line{}, err
	}
	text, score := r.text(letters, n)
	return line{box, text, score}, nil
}

// text returns the letters of probabilities of n each, where a letter is seen more than once, unless nothing is between.
func (r *reader) text(likely []float32, n int) (string, float32) {
	var text strings.Builder
	sum, count, last := float32(0), float32(0), 0
	for row := range slices.Chunk(likely, n) {
		best := slices.Max(row)
		i := slices.Index(row, best)
		if i != last && i > 0 && i < len(r.letters) {
			text.WriteString(r.letters[i])
			sum, count = sum+best, count+1
		}
		last = i
	}
	return text.String(), sum / max(count, 1)
}

// run returns the output of a model, with its last size.
func run(ctx context.Context, m *model.Model, x model.Shaped) ([]float32, int, error) {
	out, err := m.Run(ctx, model.Inputs{"x": x})
	if err != nil {
		return nil, 0, err
	}
	a := out[m.Outputs()[0].Name]
	data, err := model.Slice[float32](a)
	return data, a.Dim(a.NDim() - 1), err
}

// tensor scales a box of a picture to w and h, puts it at the left of a tensor of the width all, and makes its levels
// what models have learnt, blue first.
func tensor(picture image.Image, box image.Rectangle, w, h, all int, mean, deviation [3]float32) model.Shaped {
	scaled := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.BiLinear.Scale(scaled, scaled.Bounds(), picture, box, draw.Src, nil)
	data := make([]float32, 3*h*all)
	for y := range h {
		for x := range w {
			for c := range 3 {
				v := float32(scaled.Pix[scaled.PixOffset(x, y)+2-c]) / 255
				data[(c*h+y)*all+x] = (v - mean[c]) / deviation[c]
			}
		}
	}
	return model.Tensor(data, 1, 3, h, all)
}

// upsideDown is a picture with a box turned by 180 degrees.
type upsideDown struct {
	image.Image
	box image.Rectangle
}

func (u upsideDown) At(x, y int) color.Color {
	return u.Image.At(u.box.Min.X+u.box.Max.X-1-x, u.box.Min.Y+u.box.Max.Y-1-y)
}

// boxes returns the boxes of text, by how likely each pixel is in one.
func boxes(likely []float32, w, h int) []image.Rectangle {
	const pixel, text, grow = 0.3, 0.6, 1.6 // PaddleOCR's: of a pixel, of a box, and by how much boxes are too small
	seen := make([]bool, len(likely))
	var found []image.Rectangle
	for from := range likely {
		if likely[from] < pixel || seen[from] {
			continue
		}
		// The pixels around it that are likely, too.
		var box image.Rectangle
		sum, todo := float32(0), []int{from}
		seen[from] = true
		n := 0
		for ; n < len(todo); n++ {
			p := image.Pt(todo[n]%w, todo[n]/w)
			box, sum = box.Union(image.Rectangle{p, p.Add(image.Pt(1, 1))}), sum+likely[todo[n]]
			for _, d := range [4]image.Point{{0, -1}, {-1, 0}, {1, 0}, {0, 1}} {
				if q := p.Add(d); q.In(image.Rect(0, 0, w, h)) && likely[q.Y*w+q.X] >= pixel && !seen[q.Y*w+q.X] {
					seen[q.Y*w+q.X], todo = true, append(todo, q.Y*w+q.X)
				}
			}
		}
		if sum/float32(n) < text || min(box.Dx(), box.Dy()) < 3 {
			continue
		}
		edge := int(math.Round(float64(box.Dx()*box.Dy()) * grow / float64(2*(box.Dx()+box.Dy()))))
		found = append(found, box.Inset(-edge).Intersect(image.Rect(0, 0, w, h)))
	}
	// Boxes of one line of print are read from left to right.
	slices.SortStableFunc(found, func(a, b image.Rectangle) int { return cmp.Compare(a.Min.Y+a.Max.Y, b.Min.Y+b.Max.Y) })
	for i := range found {
		for k := i; k > 0 && (found[k].Min.Y+found[k].Max.Y)/2 < found[k-1].Max.Y-found[k-1].Dy()/4 && found[k].Min.X < found[k-1].Min.X; k-- {
			found[k], found[k-1] = found[k-1], found[k]
		}
	}
	return found
}
