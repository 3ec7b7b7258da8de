package component

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// DerivedText returns how a derived component is made, as text that [ParseDerived] reads. name
// returns the name of a component that it is made from, which is not empty and has no space,
// equals sign or bracket. The error wraps errDerived if c is not one of this package.
func DerivedText(c Component, name func(Component) (string, error)) (string, error) {
	t := &derivation{name: name}
	switch c := c.(type) {
	case *overwriting:
		t.word("overwriting")
		t.component("base", c.base)
	case *adding:
		t.word("adding")
		t.component("base", c.base)
	case *maskedReLU:
		t.word("masked-relu")
		t.component("base", c.base)
		t.number("first", c.first, 0)
		t.number("rows", c.rows, 0)
	case *inputColumns:
		t.word("columns")
		t.component("base", c.base)
		t.number("first", c.first, 0)
		t.number("n", c.w.m.Cols, 0)
	case *Product:
		t.word("product")
		t.product(c)
	default:
		return "", fmt.Errorf("%w: a %s has no text", errDerived, c.Type())
	}
	return strings.Join(t.words, " "), t.err
}

// derivation collects the words that describe a derived component.
type derivation struct {
	name  func(Component) (string, error)
	words []string
	err   error
}

func (t *derivation) word(w string) { t.words = append(t.words, w) }

func (t *derivation) flag(name string, on bool) {
	if on {
		t.word(name)
	}
}

func (t *derivation) number(key string, n, absent int) {
	if n != absent {
		t.word(key + "=" + strconv.Itoa(n))
	}
}

func (t *derivation) component(key string, c Component) {
	name, err := t.name(c)
	if t.err == nil {
		t.err = err
	}
	t.word(key + "=" + name)
}

// product describes a product: what it is the product of, its blocks, and what it does to the
// result.
func (t *derivation) product(p *Product) {
	t.component("base", p.base)
	if p.inner != nil {
		t.component("after", p.inner)
	}
	t.number("in", p.inputDim, p.base.InputDim())
	t.flag("simple", p.simple)
	t.flag("adds", p.adds)
	t.flag("bias", p.bias != nil)
	t.flag("relu", p.relu)
	if p.scale != nil {
		t.component("scale", p.scaledBy)
	}
	for _, c := range p.tail {
		t.component("then", c)
	}
	if p.alpha != 0 {
		t.word("onto=" + strconv.FormatFloat(float64(p.alpha), 'g', -1, 32))
	}
	if p.precision != kernel.Float32 {
		t.word("precision=" + p.precision.String())
	}
	sources := p.sources()
	blocks := make([][5]int32, len(p.blocks))
	for i, b := range p.blocks {
		from, col, ok := locate(b.w, sources)
		if !ok && t.err == nil {
			t.err = fmt.Errorf("%w: block %d of %s is not a part of the parameters of its base", errDerived, i, p.Type())
		}
		blocks[i] = [5]int32{int32(from), int32(col), int32(b.w.m.Cols), int32(b.col), 0}
		if b.goesOn {
			blocks[i][4] = 1
		}
	}
	t.word("blocks=[" + string(index.AppendRuns(nil, 5, len(blocks), func(i, j int) int32 { return blocks[i][j] })) + "]")
}

// sources returns the matrices whose parts the blocks of p are.
func (p *Product) sources() []*weights {
	whole, _ := NewProduct(p.base)
	if p.inner != nil {
		if c, ok := whole.After(p.inner); ok {
			whole = c
		}
	}
	return lists.Map(whole.blocks, func(b productBlock) *weights { return b.w })
}

// locate returns the matrix that w is a part of, and its first column there.
func locate(w *weights, sources []*weights) (from, col int, ok bool) {
	if i := slices.Index(sources, w); i >= 0 {
		return i, 0, true
	}
	if i := slices.Index(sources, w.whole); i >= 0 && w.whole != nil {
		return i, w.col, true
	}
	for i, s := range sources { // parts of a matrix that does not keep them
		if s.m.Stride != w.m.Stride || s.m.Rows != w.m.Rows || len(s.m.Data) == 0 || len(w.m.Data) == 0 {
			continue
		}
		for col := range s.m.Cols - w.m.Cols + 1 {
			if &s.m.Data[col] == &w.m.Data[0] {
				return i, col, true
			}
		}
	}
	return 0, 0, false
}

// ParseDerived returns the component that [DerivedText] described. find returns the component of a
// name. The error wraps errDerived if the text does not describe one.
func ParseDerived(text string, find func(name string) (Component, error)) (Component, error) {
	kind, rest, _ := strings.Cut(text, " ")
	words, err := wordsOf(rest)
	if err != nil {
		return nil, err
	}
	d := &description{words: words, find: find, kind: kind}
	base := d.component("base")
	var c Component
	switch {
	case d.err != nil:
	case kind == "overwriting":
		if _, ok := base.(Backpropper); !ok {
			d.fail("%s has no backward pass", base.Type())
		}
		c = NewOverwriting(base)
	case kind == "adding":
		sum, ok := NewAdding(base)
		if !ok {
			d.fail("%s is not affine, or has no backward pass", base.Type())
		}
		c = sum
	case kind == "masked-relu":
		first, rows := d.int("first", 0), d.int("rows", 0)
		masked, ok := NewMaskedReLU(base, first, rows)
		if !ok || first < 0 || rows < 0 || first+rows > maxDim {
			d.fail("%s is not a ReLU, or it has no such rows", base.Type())
		}
		c = masked
	case kind == "columns":
		part, ok := NewInputColumns(base, d.int("first", 0), d.int("n", 0))
		if !ok {
			d.fail("%s is not affine, or has no such columns", base.Type())
		}
		c = part
	case kind == "product":
		c = d.product(base)
	default:
		return nil, fmt.Errorf("%w: no kind %q", errDerived, fileio.Excerpt(kind, 0))
	}
	if d.err == nil {
		for _, w := range d.words {
			d.fail("%q is unknown or too much", fileio.Excerpt(w, 0))
		}
	}
	if d.err != nil {
		return nil, d.err
	}
	return c, nil
}

// wordsOf splits a text at spaces outside of brackets.
func wordsOf(text string) ([]string, error) {
	var words []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		end := strings.IndexByte(text, ' ')
		if open := strings.IndexByte(text, '['); open >= 0 && (end < 0 || open < end) {
			shut := strings.IndexByte(text, ']')
			if shut < open || shut+1 < len(text) && text[shut+1] != ' ' {
				return nil, fmt.Errorf("%w: a bracket is not closed", errDerived)
			}
			end = shut + 1
		}
		if end < 0 {
			end = len(text)
		}
		words, text = append(words, text[:end]), text[end:]
	}
	return words, nil
}

// description is a text about a derived component. Words are removed as they are understood. The
// first error stays.
type description struct {
	kind  string
	words []string
	find  func(string) (Component, error)
	err   error
}

func (d *description) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s: %s", errDerived, fileio.Excerpt(d.kind, 0), fmt.Sprintf(format, args...))
	}
}

// value removes the first value of a key.
func (d *description) value(key string) (string, bool) {
	for i, w := range d.words {
		if v, ok := strings.CutPrefix(w, key+"="); ok {
			d.words = slices.Delete(d.words, i, i+1)
			return v, true
		}
	}
	return "", false
}

func (d *description) flag(name string) bool {
	i := slices.Index(d.words, name)
	if i < 0 {
		return false
	}
	d.words = slices.Delete(d.words, i, i+1)
	return true
}

func (d *description) int(key string, absent int) int {
	text, ok := d.value(key)
	if !ok {
		return absent
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		d.fail("%s=%q is not a number", key, fileio.Excerpt(text, 0))
	}
	return int(n)
}

// component returns the component of a key that must be there.
func (d *description) component(key string) Component {
	c := d.optional(key)
	if c == nil {
		d.fail("%s= is missing", key)
	}
	return c
}

func (d *description) optional(key string) Component {
	name, ok := d.value(key)
	if !ok {
		return nil
	}
	c, err := d.find(name)
	if err != nil && d.err == nil {
		d.err = err
	}
	return c
}

// product makes a product and checks that the parts fit each other.
func (d *description) product(base Component) *Product {
	p, ok := NewProduct(base)
	if _, derived := base.(*Product); !ok || derived {
		d.fail("%s is not affine", base.Type())
		return nil
	}
	if c := d.optional("after"); c != nil {
		inner, ok := c.(*Product)
		if ok {
			p, ok = p.After(inner)
		}
		if !ok {
			d.fail("the base does not follow %s", c.Type())
			return nil
		}
	}
	q := *p
	q.inputDim = d.int("in", base.InputDim())
	q.simple, q.adds, q.relu = d.flag("simple"), d.flag("adds"), d.flag("relu")
	if !d.flag("bias") {
		q.bias = nil
	} else if q.bias == nil {
		d.fail("the base has no bias")
	}
	d.scale(&q)
	for c := d.optional("then"); c != nil && d.err == nil; c = d.optional("then") {
		if bn, ok := c.(*batchNorm); !rowwise(c) && !(ok && bn.test) && !isNonlinearity(c) || c.InputDim() != q.OutputDim() || c.OutputDim() != q.OutputDim() {
			d.fail("%s can't follow", c.Type())
		}
		q.tail = append(q.tail, c)
	}
	if text, ok := d.value("onto"); ok {
		alpha, err := strconv.ParseFloat(text, 32)
		if q.alpha = float32(alpha); err != nil || q.alpha == 0 || q.adds {
			d.fail("it can't accumulate onto %q of its output", fileio.Excerpt(text, 0))
		}
	}
	d.blocks(&q, p)
	return d.quantized(&q)
}

// quantized returns q in the precision that the text names.
func (d *description) quantized(q *Product) *Product {
	text, ok := d.value("precision")
	if !ok || d.err != nil {
		return q
	}
	for _, to := range []kernel.Precision{kernel.Int8, kernel.Int16} {
		if to.String() == text {
			if p, ok := q.Quantized(to); ok {
				return p
			}
			d.fail("its parameters can't be quantized")
			return q
		}
	}
	d.fail("precision %q is neither int8 nor int16", fileio.Excerpt(text, 0))
	return q
}

func isNonlinearity(c Component) bool {
	_, ok := c.(*nonlinearity)
	return ok
}

func (d *description) scale(q *Product) {
	c := d.optional("scale")
	if c == nil {
		return
	}
	bn, ok := c.(*batchNorm)
	if !ok || !bn.test || bn.dim != q.OutputDim() {
		d.fail("%s is no batch normalization in test mode, or does not fit", c.Type())
		return
	}
	q.scale, q.offset, q.scaledBy = bn.scale, bn.offset, bn
}

// blocks reads the blocks, which are parts of those of whole.
func (d *description) blocks(q, whole *Product) {
	text, _ := d.value("blocks")
	q.blocks = nil
	err := index.ParseRuns(strings.Trim(text, "[]"), 5, 5, func(t []int32) error {
		if t[0] < 0 || int(t[0]) >= len(whole.blocks) {
			return fmt.Errorf("there is no block %d", t[0])
		}
		w := whole.blocks[t[0]].w
		col, cols, at := int(t[1]), int(t[2]), int(t[3])
		if col < 0 || cols < 1 || col+cols > w.m.Cols || at < 0 || at+cols > q.inputDim || t[4] < 0 || t[4] > 1 {
			return fmt.Errorf("block %v does not fit", t)
		}
		q.blocks = append(q.blocks, productBlock{w: w.part(col, cols), col: at, goesOn: t[4] == 1})
		return nil
	})
	switch {
	case err != nil:
		d.fail("%v", err)
	case len(q.blocks) == 0:
		d.fail("blocks= is missing")
	case q.simple && (len(q.blocks) > 1 || q.blocks[0].w.m.Cols != q.inputDim):
		d.fail("a simple product has one block, as wide as its input")
	case q.blocks[0].goesOn && !q.adds:
		d.fail("the first block continues sums, but the product does not add")
	case q.inputDim < 1 || q.inputDim > maxDim:
		d.fail("%d columns", q.inputDim)
	}
}
