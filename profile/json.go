package profile

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// WriteJSON writes the profile as one indented JSON object. Durations are whole
// nanoseconds, under keys that end in "_ns".
func (f *Function) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(f)
}

// ReadJSON reads what [Function.WriteJSON] wrote. It ignores unknown keys, so that
// profiles of later versions can be compared, and escapes unprintable characters of
// names as Go does, because they could garble a report. It does not limit how much
// it reads from r.
func ReadJSON(r io.Reader) (*Function, error) {
	f := new(Function)
	if err := json.NewDecoder(r).Decode(f); err != nil {
		return nil, fmt.Errorf("profile: reading JSON: %w", err)
	}
	for _, r := range f.Optimizer.All() {
		// A parent is yielded before the walk goes on to its children, so a null is found before it is
		// followed.
		for _, c := range r.Children {
			if c == nil {
				return nil, fmt.Errorf("profile: reading JSON: a child of %q is null", r.Name)
			}
		}
	}
	f.escapeNames()
	return f, nil
}

// escapeNames escapes unprintable characters of all names.
func (f *Function) escapeNames() {
	escape := func(names ...*string) {
		for _, name := range names {
			if strings.ContainsFunc(*name, func(r rune) bool { return !unicode.IsPrint(r) }) {
				*name = strings.Trim(strconv.Quote(*name), `"`)
			}
		}
	}
	escape(&f.Message)
	for i := range f.Phases {
		escape(&f.Phases[i].Name)
	}
	for i := range f.Execution {
		escape(&f.Execution[i].Name)
	}
	for _, r := range f.Optimizer.All() {
		escape(&r.Name, &r.Class)
		for i := range r.Passes {
			for j := range r.Passes[i].Rules {
				escape(&r.Passes[i].Rules[j].Name)
			}
		}
		for i := range r.Rules {
			escape(&r.Rules[i].Name)
		}
		if s := r.Saturation; s != nil {
			for i := range s.Ended {
				escape(&s.Ended[i].Name)
			}
			for i := range s.Laps {
				for j := range s.Laps[i].Banned {
					escape(&s.Laps[i].Banned[j].Name)
				}
			}
		}
		for i := range r.Counters {
			escape(&r.Counters[i].Name, &r.Counters[i].Unit)
		}
	}
}
