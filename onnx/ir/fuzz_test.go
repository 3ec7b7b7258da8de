package ir_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
)

// attributeNames are attributes that inference looks at.
var attributeNames = strings.Fields(`axis axes perm shape keepdims noop_with_empty_axes allowzero start end to dtype output_dtype stash_type kernel_shape strides pads dilations
	group auto_pad ceil_mode output_padding output_shape blocksize num_outputs batch_dims equation keep_aspect_ratio_policy layout hidden_size direction q_num_heads kv_num_heads
	num_scan_inputs scan_input_axes scan_output_axes new_axis onesided inverse transA transB reduction value_ints value_int sample_size ngram_indexes pooled_shape`)

// sizeTexts are parts of random types.
var sizeTexts = []string{"n", "t", "?", "0", "1", "2", "3", "7", "64", "-1", "2147483647", "9223372036854775807", "-9223372036854775808", "2*n+1", "div(n+1,2)", "max(0,n-3)", "min(512,t)", "n*t", "\"x y\"", "4611686018427387904*n"}

// A source makes choices from bytes.
type source struct{ data []byte }

func (s *source) next(n int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := int(s.data[0])
	s.data = s.data[1:]
	return b % n
}

func (s *source) number() int64 {
	special := []int64{0, 1, 2, 3, -1, -2, 5, 16, 1 << 31, -1 << 63, 1<<63 - 1, 1 << 40}
	return special[s.next(len(special))]
}

func (s *source) dims(most int) (text string, n int) {
	list := make([]string, s.next(most+1))
	for i := range list {
		list[i] = sizeTexts[s.next(len(sizeTexts))]
	}
	return strings.Join(list, ","), len(list)
}

// argument makes the type of an input, or a constant of few integers or floats.
func (s *source) argument(t *testing.T) *fgraph.Variable {
	elem := onnx.DataType(1 + s.next(int(onnx.Int2)))
	text := ""
	switch s.next(9) {
	case 0:
		return nil
	case 1:
		text = "unknown"
	case 2:
		text = elem.String() + "[*]"
	case 3:
		dims, _ := s.dims(3)
		text = "opaque[seq(" + elem.String() + "[" + dims + "])]"
	case 4, 5: // a shape
		dims, n := s.dims(8)
		text = fmt.Sprintf("int64[%d]{%s}", n, dims)
	case 6: // a parameter
		list := make([]int64, s.next(6))
		for i := range list {
			list[i] = s.number()
		}
		return ir.Int64s(list...)
	case 7:
		list := make([]float32, s.next(5))
		for i := range list {
			list[i] = float32(s.number()) / 2
		}
		return ir.Constant(ir.NewValue(&onnx.Tensor{DataType: onnx.Float, Dims: []int64{int64(len(list))}, Floats: list}, ""), "")
	default:
		dims, _ := s.dims(7)
		text = elem.String() + "[" + dims + "]"
	}
	typ, err := ir.ParseType(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return fgraph.NewInput(typ, "")
}

func (s *source) attribute() *onnx.Attribute {
	a := &onnx.Attribute{Name: attributeNames[s.next(len(attributeNames))]}
	switch s.next(4) {
	case 0:
		a.Type, a.Int = onnx.AttributeInt, s.number()
	case 1:
		a.Type, a.Ints = onnx.AttributeInts, make([]int64, s.next(7))
		for i := range a.Ints {
			a.Ints[i] = s.number()
		}
	case 2:
		texts := []string{"SAME_UPPER", "VALID", "ij,jk->ik", "...i,i...", "a,b,c->abc", "not_larger", "bidirectional", "none", "ii", "é->", "->", "..->."}
		a.Type, a.String = onnx.AttributeString, []byte(texts[s.next(len(texts))])
	case 3:
		a.Type, a.Int = onnx.AttributeInt, int64(s.next(30))
	}
	return a
}

// FuzzInfer: whatever an operator is given, types are inferred or refused, and are read as they are
// written.
func FuzzInfer(f *testing.F) {
	operators := ir.Standard()
	all := operators.All()
	for i := range all {
		seed := binary.LittleEndian.AppendUint16(nil, uint16(i))
		f.Add(append(seed, 1, 2, 8, 3, 4, 4, 5, 1, 2, 3, 6, 3, 0, 1, 2))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 {
			return
		}
		s := &source{data[2:]}
		o := all[int(binary.LittleEndian.Uint16(data))%len(all)]
		op := ir.Op{Domain: o.Domain, Type: o.Type, Outputs: 1 + s.next(4)}
		if s.next(8) == 0 {
			op.Legacy = int64(7 + s.next(16))
		}
		for range s.next(4) {
			op.Attributes = append(op.Attributes, s.attribute())
		}
		var in []*fgraph.Variable
		for range s.next(7) {
			in = append(in, s.argument(t))
		}
		built := operators.NewOp(op)
		a, err := operators.Apply(built, in...)
		if err != nil {
			if !errors.Is(err, ir.ErrType) {
				t.Fatal(err)
			}
			return
		}
		for _, v := range a.Outputs() {
			typ := ir.TypeOf(v)
			again, err := ir.ParseType(typ.String())
			if err != nil || again != typ {
				t.Fatalf("%v is read as %v: %v", typ, again, err)
			}
			if both, ok := typ.Meet(typ); !ok || both != typ || typ.Join(typ) != typ {
				t.Fatalf("%v is not what it is", typ)
			}
			if p := typ.Proto(); p != nil && !typ.Accepts(ir.FromProto(p)) {
				t.Fatalf("%v does not accept what is written for it, %v", typ, ir.FromProto(p))
			}
		}
		if text := built.String(); !strings.Contains(text, "é") {
			if again, err := operators.ParseOp(text); err != nil || !again.EqualOp(built) {
				t.Fatalf("%s is read as %v: %v", text, again, err)
			}
		}
	})
}

// FuzzParseType: what is read is written as what is read again.
func FuzzParseType(f *testing.F) {
	for _, text := range []string{"float[n,3]", "int64[2]{n,div(n+1,2)}", "float[*]", "opaque[seq(float[n])]", "unknown", `bool["a]b",?]`, "int64[2,2]{1,2,3,4}", "float[]", "float[max(0,min(n,5)-2)]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		typ, err := ir.ParseType(text)
		if err != nil {
			return
		}
		again, err := ir.ParseType(typ.String())
		if err != nil || again != typ {
			t.Fatalf("%q is %v, which is read as %v: %v", text, typ, again, err)
		}
	})
}
