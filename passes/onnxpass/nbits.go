package onnxpass

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/hugepages"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

// A block of 32 terms has a scale. What the settings are unless a query says otherwise.
const (
	blockTerms  = 32
	usualBits   = 4
	usualChange = 0.25
)

// MatMulNBits returns the pass matmul_nbits: products with constant matrices of float32s become products with codes
// of 4 or 8 bits, MatMulNBits of ONNX Runtime.
func MatMulNBits() rewrite.GraphRewriter { return matMulNBits(usualBits, usualChange) }

func matMulNBits(bits int, most float64) nBits {
	return nBits{bits: bits, most: most, Global: rewrite.Global{
		Name: "matmul_nbits",
		Doc: "products with constant matrices have codes of few bits for their weights, with a scale for every 32 terms of a column; " +
			"a matrix that they change by more than the setting error stays as it is",
		Fn: func(ctx context.Context, h *rewrite.Handle) error {
			done := make(map[*fgraph.Variable]*codedMatrix)
			for _, a := range slices.Collect(h.Graph().Ordered()) {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := encodeProduct(h, a, done, bits, most); err != nil {
					return err
				}
			}
			return nil
		},
	}}
}

// nBits is matmul_nbits with its settings.
type nBits struct {
	rewrite.Global
	bits int
	most float64
}

// Settings returns bits and error.
func (p nBits) Settings() []rewrite.Setting {
	text := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	return []rewrite.Setting{
		{Name: "bits", Value: strconv.Itoa(p.bits), Default: strconv.Itoa(usualBits), Doc: "bits of a code: 4 or 8"},
		{Name: "error", Value: text(p.most), Default: text(usualChange),
			Doc: "the largest change of a matrix, relative to its norm, and in the checks of opt and verify of an output"},
	}
}

// Configured returns the pass with another setting.
func (p nBits) Configured(name, value string) (rewrite.Configurable, error) {
	if name == "bits" {
		if value != "4" && value != "8" {
			return nil, fmt.Errorf("%q is not 4 or 8", value)
		}
		return matMulNBits(int(value[0]-'0'), p.most), nil
	}
	most, err := strconv.ParseFloat(value, 64)
	if err != nil || !(most >= 0) || math.IsInf(most, 0) {
		return nil, fmt.Errorf("%q is not a number of at least 0", value)
	}
	return matMulNBits(p.bits, most), nil
}

// A constantProduct is a product of rows with a constant matrix: element (k, n) of it is element k*row + n*column of
// the constant.
type constantProduct struct {
	w              *fgraph.Variable
	terms, columns int
	row, column    int
	bias           *fgraph.Variable // nil if there is none
}

// productWithConstant returns an apply as a product with a constant matrix, nil if it is none, and one that has fewer rows or columns than a block.
func productWithConstant(a *fgraph.Apply) *constantProduct {
	in := a.Inputs()
	if !isOp(a.Out(), "MatMul", "Gemm") || ir.TypeOf(in[0]).Rank() < 2 {
		return nil
	}
	op, p := opOf(a.Out()), &constantProduct{w: in[1]}
	dims, known := ir.TypeOf(p.w).Numbers()
	if !known || len(dims) != 2 || ir.TypeOf(p.w).Elem() != onnx.Float || ir.ValueOf(p.w) == nil ||
		min(dims[0], dims[1]) < blockTerms {
		return nil
	}
	p.terms, p.columns = int(dims[0]), int(dims[1])
	p.row, p.column = p.columns, 1
	if op.Type == "MatMul" {
		return p
	}
	if op.Int("transA", 0) != 0 || op.Float("alpha", 1) != 1 || op.Float("beta", 1) != 1 {
		return nil
	}
	if op.Int("transB", 0) != 0 {
		p.terms, p.columns = p.columns, p.terms
		p.row, p.column = 1, p.terms
	}
	if len(in) > 2 && !ir.IsOmitted(in[2]) {
		if p.bias = in[2]; !slices.Equal(sizesOf(p.bias), []int64{int64(p.columns)}) {
			return nil
		}
	}
	return p
}

// sizesOf returns the sizes of a value, nil if one is not known.
func sizesOf(v *fgraph.Variable) []int64 {
	dims, _ := ir.TypeOf(v).Numbers()
	return dims
}

// encodeProduct replaces a product with a constant matrix.
func encodeProduct(h *rewrite.Handle, a *fgraph.Apply, done map[*fgraph.Variable]*codedMatrix, bits int, most float64) error {
	if !h.Graph().Contains(a) {
		return nil
	}
	p := productWithConstant(a)
	if p == nil {
		return nil
	}
	c := done[p.w]
	if c == nil {
		// Weights that somebody else reads stay, and codes beside them would only make the model larger.
		for _, client := range p.w.Clients() {
			if client.Apply == nil || client.Index != 1 {
				return nil
			}
			if q := productWithConstant(client.Apply); q == nil || q.row != p.row {
				return nil
			}
		}
		var err error
		if c, err = p.encode(bits); err != nil {
			return nil // elements that can't be read are the fault of who needs them
		}
		done[p.w] = c
	}
	if !(c.change <= most) {
		return nil
	}
	inputs := []*fgraph.Variable{a.Inputs()[0], c.codes, c.scales}
	if p.bias != nil {
		inputs = append(inputs, ir.Missing(), ir.Missing(), p.bias)
	}
	operators := ir.SourceOf(h.Graph()).Operators
	op, err := operators.ParseOp(fmt.Sprintf("com.microsoft.MatMulNBits{K=%d, N=%d, bits=%d, block_size=%d}", p.terms, p.columns, bits, blockTerms))
	if err != nil {
		return err
	}
	y, err := operators.Apply(op, inputs...)
	if err != nil {
		return nil
	}
	_, err = h.Replace("", a, fgraph.Replacement{Old: a.Out(), New: y.Out()})
	return err
}

// A codedMatrix is a matrix as codes, a column after the other, and a scale for each block of a column.
type codedMatrix struct {
	codes, scales *fgraph.Variable
	change        float64 // the norm of the difference of what codes stand for and the weights, by that of the weights; NaN if weights are not finite
}

// encode encodes the matrix. The weight of a block that is largest without its sign gets the code 0, of which there is one more
// below the zero, 2^(bits-1), than above it; that decides the scale.
func (p *constantProduct) encode(bits int) (*codedMatrix, error) {
	raw, err := ir.ValueOf(p.w).Bytes()
	if err != nil {
		return nil, err
	}
	blocks := (p.terms + blockTerms - 1) / blockTerms
	codes := hugepages.Make[byte](p.columns * blocks * blockTerms * bits / 8)
	scales := make([]byte, 4*p.columns*blocks)
	zero := float32(int(1) << (bits - 1))
	var change, all float64
	var w [blockTerms]float32
	// Blocks of the same terms of all columns one after the other: rows are read from the first to the last.
	for b := range blocks {
		for n := range p.columns {
			clear(w[:]) // beyond the last term there are zeros
			extreme := float32(0)
			for i := range min(blockTerms, p.terms-b*blockTerms) {
				x := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*((b*blockTerms+i)*p.row+n*p.column):]))
				if w[i] = x; !(abs32(x) <= abs32(extreme)) {
					extreme = x
				}
			}
			scale := extreme / -zero
			at := n*blocks + b
			binary.LittleEndian.PutUint32(scales[4*at:], math.Float32bits(scale))
			block := codes[at*blockTerms*bits/8:]
			for i, x := range w {
				code := zero
				if scale != 0 {
					code = min(max(float32(math.RoundToEven(float64(x/scale)))+zero, 0), 2*zero-1)
				}
				// The first of two codes is in the low bits.
				block[i*bits/8] |= byte(int(code) << (i * bits % 8))
				d := float64(x) - float64(float64(scale)*float64(code-zero))
				change += float64(d * d)
				all += float64(float64(x) * float64(x))
			}
		}
	}
	c := &codedMatrix{}
	if all != 0 {
		c.change = math.Sqrt(change / all)
	}
	name := p.w.Name()
	if c.codes, err = constantOf(name+"_codes", onnx.Uint8, codes, int64(p.columns), int64(blocks), int64(blockTerms*bits/8)); err == nil {
		c.scales, err = constantOf(name+"_scales", onnx.Float, scales, int64(p.columns), int64(blocks))
	}
	return c, err
}

func abs32(x float32) float32 { return float32(math.Abs(float64(x))) }
