package profile

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the profile as one indented JSON object. Durations are whole
// nanoseconds, under keys that end in "_ns".
func (f *Function) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(f)
}

// ReadJSON reads what [Function.WriteJSON] wrote. Unknown keys are ignored, so
// that a profile of a later version can still be compared.
func ReadJSON(r io.Reader) (*Function, error) {
	f := new(Function)
	if err := json.NewDecoder(r).Decode(f); err != nil {
		return nil, fmt.Errorf("profile: reading JSON: %w", err)
	}
	for _, r := range f.Optimizer.All() {
		for _, c := range r.Children {
			if c == nil {
				return nil, fmt.Errorf("profile: reading JSON: a child of %q is null", r.Name)
			}
		}
	}
	return f, nil
}
