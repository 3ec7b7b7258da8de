package profile

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/nnopt/nnopt/fileio"
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
// that a profile of a later version can still be compared. Names that would not
// stay in their place in a report are quoted, as [fileio.PlainName] does. At most
// [fileio.MaxText] bytes are read.
func ReadJSON(r io.Reader) (*Function, error) {
	f := new(Function)
	if err := json.NewDecoder(fileio.Limit(r, "the profile", fileio.MaxText)).Decode(f); err != nil {
		return nil, fmt.Errorf("profile: reading JSON: %w", err)
	}
	for _, r := range f.Optimizer.All() {
		for _, c := range r.Children {
			if c == nil {
				return nil, fmt.Errorf("profile: reading JSON: a child of %q is null", r.Name)
			}
		}
	}
	f.quoteNames()
	return f, nil
}

// quoteNames makes every name fit for reports.
func (f *Function) quoteNames() {
	quote := func(names ...*string) {
		for _, name := range names {
			*name = fileio.PlainName(*name)
		}
	}
	quote(&f.Message)
	for i := range f.Phases {
		quote(&f.Phases[i].Name)
	}
	for i := range f.Execution {
		quote(&f.Execution[i].Name)
	}
	for _, r := range f.Optimizer.All() {
		quote(&r.Name, &r.Class)
		for i := range r.Passes {
			for j := range r.Passes[i].Rules {
				quote(&r.Passes[i].Rules[j].Name)
			}
		}
		for i := range r.Rules {
			quote(&r.Rules[i].Name)
		}
		for i := range r.Counters {
			quote(&r.Counters[i].Name, &r.Counters[i].Unit)
		}
	}
}
