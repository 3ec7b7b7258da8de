package models

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// npy returns a file of NumPy with a header.
func npy(version byte, header, data string) string {
	length := string([]byte{byte(len(header)), byte(len(header) >> 8)})
	if version > 1 {
		length += "\x00\x00"
	}
	return "\x93NUMPY" + string([]byte{version, 0}) + length + header + data
}

// TestNumPy reads arrays of versions and types, and refuses what is none.
func TestNumPy(t *testing.T) {
	for _, c := range []struct {
		file  string
		shape []int
		want  []float64
	}{
		{npy(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n", "\x01\x00\x00\x00\x00\x00\x00\x00\xfe\xff\xff\xff\xff\xff\xff\xff"), []int{2}, []float64{1, -2}},
		{npy(2, "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 3), }", "\x00\x01\xff"), []int{1, 3}, []float64{0, 1, 255}},
		{npy(3, "{'shape': (), 'descr': '<f4'}", "\x00\x00\x80\x3f"), []int{}, []float64{1}},
		{npy(1, "{'descr': '|b1', 'shape': (0, 2)}", ""), []int{0, 2}, []float64{}},
	} {
		a, err := parseNumPy([]byte(c.file))
		if err != nil || !slices.Equal(a.Shape(), c.shape) || !slices.Equal(a.Floats(), c.want) {
			t.Errorf("%q: %v, %v", c.file, a, err)
		}
	}
	for file, want := range map[string]string{
		"": "does not begin",
		"\x93NUMPY\x01\x00\xff\xff{'descr': '<f4'":                                     "ends within its header",
		npy(1, "{'descr': '<f4'}", ""):                                                 "its header is",
		npy(1, "{'descr': '<c8', 'shape': ()}", "12345678"):                            `elements of type "<c8"`,
		npy(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", "1234"):       "order of columns",
		npy(1, "{'descr': '<f4', 'shape': (x,)}", "1234"):                              "its shape is",
		npy(1, "{'descr': '<f4', 'shape': (4611686018427387904, 8)}", "1234"):          "",
		npy(1, "{'descr': '<f4', 'shape': (-1,)}", "1234"):                             "",
		npy(1, "{'descr': '<f4', 'shape': (2,)}", "1234"):                              "",
		npy(1, "{'descr': '<f4', 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)}", "1234"): "",
	} {
		_, err := parseNumPy([]byte(file))
		if err == nil || want != "" && (!errors.Is(err, errNumPy) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %s", file, err, want)
		}
	}
}
