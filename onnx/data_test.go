package onnx_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/onnx"
)

// TestData: elements have the same bytes, wherever they are.
func TestData(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "w.bin"), []byte("0123456789"), 0o666); err != nil {
		t.Fatal(err)
	}
	entries := func(pairs ...string) []*onnx.Entry {
		var list []*onnx.Entry
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, &onnx.Entry{Key: pairs[i], Value: pairs[i+1]})
		}
		return list
	}
	for name, c := range map[string]struct {
		of   onnx.Tensor
		want string
	}{
		"raw":            {onnx.Tensor{DataType: onnx.Int8, Dims: []int64{3}, Raw: []byte("abc")}, "abc"},
		"a scalar":       {onnx.Tensor{DataType: onnx.Float, Floats: []float32{1}}, "\x00\x00\x80\x3f"},
		"empty":          {onnx.Tensor{DataType: onnx.Double, Dims: []int64{1 << 62, 0, 1 << 62}}, ""},
		"float16":        {onnx.Tensor{DataType: onnx.Float16, Dims: []int64{2}, Int32s: []int32{0x3c00, 0xffff}}, "\x00\x3c\xff\xff"},
		"int8":           {onnx.Tensor{DataType: onnx.Int8, Dims: []int64{2}, Int32s: []int32{-1, 127}}, "\xff\x7f"},
		"int4":           {onnx.Tensor{DataType: onnx.Int4, Dims: []int64{3}, Int32s: []int32{0x52, 3}}, "\x52\x03"},
		"int32":          {onnx.Tensor{DataType: onnx.Int32, Dims: []int64{1}, Int32s: []int32{-2}}, "\xfe\xff\xff\xff"},
		"int64":          {onnx.Tensor{DataType: onnx.Int64, Dims: []int64{1}, Int64s: []int64{-2}}, "\xfe\xff\xff\xff\xff\xff\xff\xff"},
		"uint32":         {onnx.Tensor{DataType: onnx.Uint32, Dims: []int64{1}, Uint64s: []uint64{7}}, "\x07\x00\x00\x00"},
		"uint64":         {onnx.Tensor{DataType: onnx.Uint64, Dims: []int64{1}, Uint64s: []uint64{math.MaxUint64}}, "\xff\xff\xff\xff\xff\xff\xff\xff"},
		"double":         {onnx.Tensor{DataType: onnx.Double, Dims: []int64{1}, Doubles: []float64{-2}}, "\x00\x00\x00\x00\x00\x00\x00\xc0"},
		"complex":        {onnx.Tensor{DataType: onnx.Complex64, Dims: []int64{1}, Floats: []float32{0, 1}}, "\x00\x00\x00\x00\x00\x00\x80\x3f"},
		"external":       {onnx.Tensor{DataType: onnx.Uint16, Dims: []int64{2}, Location: onnx.LocationExternal, External: entries("location", "w.bin", "offset", "3", "length", "4")}, "3456"},
		"external whole": {onnx.Tensor{DataType: onnx.Uint8, Dims: []int64{10}, Location: onnx.LocationExternal, External: entries("location", "w.bin")}, "0123456789"},
		"too few":        {onnx.Tensor{Name: "w", DataType: onnx.Float, Dims: []int64{3}, Floats: []float32{1, 2}}, "!tensor w: onnx: bad tensor: 2 values for 3 elements of type float"},
		"too long":       {onnx.Tensor{DataType: onnx.Float, Dims: []int64{1}, Raw: make([]byte, 5)}, "!5 bytes for 1 elements"},
		"strings":        {onnx.Tensor{DataType: onnx.String, Strings: [][]byte{{}}}, "!type string"},
		"negative":       {onnx.Tensor{DataType: onnx.Float, Dims: []int64{-1}}, "!size -1"},
		"huge":           {onnx.Tensor{DataType: onnx.Float, Dims: []int64{1 << 40, 1 << 40}}, "!too many elements"},
		"outside":        {onnx.Tensor{DataType: onnx.Uint8, Location: onnx.LocationExternal, External: entries("location", "../w.bin")}, "!not below the folder"},
		"absolute":       {onnx.Tensor{DataType: onnx.Uint8, Location: onnx.LocationExternal, External: entries("location", "/etc/passwd")}, "!not below the folder"},
		"by a link":      {onnx.Tensor{DataType: onnx.Uint8, Location: onnx.LocationExternal, External: entries("location", "link")}, "!escapes"},
		"a folder":       {onnx.Tensor{DataType: onnx.Uint8, Location: onnx.LocationExternal, External: entries("location", ".")}, "!is not a regular file"},
		"past the end":   {onnx.Tensor{DataType: onnx.Uint8, Dims: []int64{1 << 40}, Location: onnx.LocationExternal, External: entries("location", "w.bin")}, "!has no 1099511627776 bytes"},
		"absurd offset":  {onnx.Tensor{DataType: onnx.Uint8, Location: onnx.LocationExternal, External: entries("location", "w.bin", "offset", "9223372036854775807")}, "!has no 1 bytes from byte 9223372036854775807"},
		"a large offset": {onnx.Tensor{DataType: onnx.Uint8, Location: onnx.LocationExternal, External: entries("location", "w.bin", "offset", "9223372036854775808")}, `!offset of external data is "9223372036854775808"`},
		"no number":      {onnx.Tensor{DataType: onnx.Uint8, Location: onnx.LocationExternal, External: entries("location", "w.bin", "offset", "x")}, `!offset of external data is "x"`},
		"other length":   {onnx.Tensor{DataType: onnx.Uint8, Location: onnx.LocationExternal, External: entries("location", "w.bin", "length", "2")}, "!2 bytes of external data, want 1"},
	} {
		if name == "by a link" {
			if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
				continue // not every system has links
			}
		}
		got, err := c.of.Data(dir)
		if fault, ok := strings.CutPrefix(c.want, "!"); ok {
			if err == nil || !strings.Contains(err.Error(), fault) || !errors.Is(err, onnx.ErrTensor) {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil || !bytes.Equal(got, []byte(c.want)) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestLimits: types have the numbers that their bits say.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		of          onnx.DataType
		least, most int64
		ok          bool
	}{
		{onnx.Bool, 0, 1, true}, {onnx.Int2, -2, 1, true}, {onnx.Int4, -8, 7, true}, {onnx.Int8, -128, 127, true}, {onnx.Int32, math.MinInt32, math.MaxInt32, true},
		{onnx.Int64, math.MinInt64, math.MaxInt64, true}, {onnx.Uint2, 0, 3, true}, {onnx.Uint16, 0, 65535, true}, {onnx.Uint32, 0, math.MaxUint32, true},
		{onnx.Uint64, 0, math.MaxInt64, true}, {onnx.Float, 0, 0, false}, {onnx.String, 0, 0, false},
	} {
		if least, most, ok := c.of.Limits(); least != c.least || most != c.most || ok != c.ok {
			t.Errorf("%v: %d, %d, %v", c.of, least, most, ok)
		}
	}
}
