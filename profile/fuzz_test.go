package profile_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/profile"
)

// FuzzReadJSON: JSON is refused, or gives all reports, and the same again once written.
func FuzzReadJSON(f *testing.F) {
	var b bytes.Buffer
	if err := sampleFunction(f).WriteJSON(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Add(`{"optimizer": {"name": "a", "children": [{"name": "b", "rules": [{"name": "r"}], "passes": [{"rules": [{"name": "r"}]}]}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := profile.ReadJSON(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, write := range []func(io.Writer) error{got.WriteText, got.WriteTrace} {
			if err := write(io.Discard); err != nil {
				t.Error(err)
			}
		}
		if got.Optimizer != nil {
			profile.Merge(got.Optimizer, got.Optimizer)
			if err := profile.WriteDiff(io.Discard, got.Optimizer, got.Optimizer); err != nil {
				t.Error(err)
			}
		}
		var b bytes.Buffer
		if err := got.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		first := b.String()
		again, err := profile.ReadJSON(&b)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, b.String()); diff != "" {
			t.Error(diff)
		}
	})
}
