package ir_test

import (
	"testing"

	"github.com/nnopt/nnopt/onnx/ir"
)

func typeOf(t *testing.T, text string) ir.Type {
	t.Helper()
	typ, err := ir.ParseType(text)
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

func TestMeetAndJoin(t *testing.T) {
	for _, c := range []struct{ x, y, meet, join string }{
		{"float[n,3]", "float[n,3]", "float[n,3]", "float[n,3]"},
		{"float[n,3]", "float[5,?]", "float[5,3]", "float[?,?]"},
		{"float[n,3]", "float[m,3]", "float[n,3]", "float[?,3]"},
		{"float[n,3]", "float[n,4]", "", "float[n,?]"},
		{"float[2*n]", "float[2*m+1]", "", "float[?]"},
		{"float[n]", "float[-1]", "", "float[?]"},
		{"float[n,3]", "float[n]", "", "float[*]"},
		{"float[n,3]", "float[*]", "float[n,3]", "float[*]"},
		{"float[n]", "int64[n]", "", "unknown"},
		{"float[n]", "unknown", "float[n]", "unknown"},
		{"int64[2]{n,3}", "int64[2]{n,?}", "int64[2]{n,3}", "int64[2]{n,?}"},
		{"int64[2]{n,3}", "int64[2]", "int64[2]{n,3}", "int64[2]"},
		{"int64[2]{n,3}", "int64[2]{n,4}", "", "int64[2]{n,?}"},
		{"opaque[seq(float[n])]", "opaque[seq(float[*])]", "opaque[seq(float[n])]", "opaque[seq(float[*])]"},
		{"opaque[seq(float[n])]", "opaque[seq(float[3])]", "opaque[seq(float[3])]", "opaque[seq(float[?])]"},
		{"opaque[seq(float[n])]", "opaque[optional(float[n])]", "", "unknown"},
		{"opaque[seq(float[n])]", "opaque[seq(int64[n])]", "", "opaque[seq(unknown)]"},
		{"opaque[map(int64,float[])]", "opaque[map(string,float[])]", "", "unknown"},
		{"opaque[seq(map(int64,float[*]))]", "opaque[seq(map(int64,float[]))]", "opaque[seq(map(int64,float[]))]", "opaque[seq(map(int64,float[*]))]"},
		{"opaque[seq(float[n])]", "float[n]", "", "unknown"},
	} {
		x, y := typeOf(t, c.x), typeOf(t, c.y)
		if meet, ok := x.Meet(y); ok != (c.meet != "") || ok && meet.String() != c.meet || x.Accepts(y) != ok || y.Accepts(x) != ok {
			t.Errorf("%v meets %v as %v, %v, not %s", x, y, meet, ok, c.meet)
		}
		if join := x.Join(y); join.String() != c.join {
			t.Errorf("%v joins %v as %v, not %s", x, y, join, c.join)
		}
	}
}

func TestProto(t *testing.T) {
	for _, text := range []string{"float[n,3,?]", "int64[*]", "bool[]", "opaque[seq(float[n])]", "opaque[optional(seq(string[*]))]"} {
		if typ := typeOf(t, text); ir.FromProto(typ.Proto()) != typ {
			t.Errorf("%v is written as %v", typ, ir.FromProto(typ.Proto()))
		}
	}
	for _, text := range []string{"unknown", "opaque[map(int64,float[])]", "opaque[seq(unknown)]"} {
		if p := typeOf(t, text).Proto(); p != nil {
			t.Errorf("%s is written as %v", text, p)
		}
	}
}
