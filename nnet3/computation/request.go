package computation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/internal/errlist"
	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// ErrRequest is the kind of all errors about requests.
var ErrRequest = errors.New("invalid request")

// Input returns the input with the given name, nil if there is none.
func (r *Request) Input(name string) *IoSpecification { return find(r.Inputs, name) }

// Output returns the output with the given name, nil if there is none.
func (r *Request) Output(name string) *IoSpecification { return find(r.Outputs, name) }

func find(specs []IoSpecification, name string) *IoSpecification {
	i := slices.IndexFunc(specs, func(s IoSpecification) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &specs[i]
}

// NeedDerivatives reports whether the request asks for a backward pass.
func (r *Request) NeedDerivatives() bool {
	return r.NeedModelDerivative || slices.ContainsFunc(r.Inputs, func(s IoSpecification) bool { return s.HasDeriv })
}

// Equal reports whether two requests ask for the same things in the same order.
func (r *Request) Equal(o *Request) bool {
	same := func(a, b IoSpecification) bool {
		return a.Name == b.Name && a.HasDeriv == b.HasDeriv && slices.Equal(a.Indexes, b.Indexes)
	}
	return r.NeedModelDerivative == o.NeedModelDerivative && r.StoreComponentStats == o.StoreComponentStats &&
		slices.EqualFunc(r.Inputs, o.Inputs, same) && slices.EqualFunc(r.Outputs, o.Outputs, same)
}

// Validate reports all faults of the request and, unless net is nil, all names that do not fit the
// network's nodes. It does not tell whether the outputs can be computed from the inputs; the
// compiler does. The error wraps ErrRequest, or is a multierror of errors that do.
func (r *Request) Validate(net *NetworkInfo) error {
	var errs []error
	addf := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrRequest}, fileio.Excerpts(args)...)...))
	}
	if len(r.Outputs) == 0 {
		addf("no output is asked for")
	}
	for _, side := range [...]struct {
		what  string
		specs []IoSpecification
		fits  func(NodeInfo) bool
	}{
		{"input", r.Inputs, func(n NodeInfo) bool { return n.IsInput || n.IsComponent }},
		{"output", r.Outputs, func(n NodeInfo) bool { return n.IsOutput }},
	} {
		named := make(map[string]bool, len(side.specs))
		for i := range side.specs {
			s := &side.specs[i]
			if named[s.Name] {
				addf("%s %q is named twice", side.what, s.Name)
			}
			named[s.Name] = true
			if net != nil {
				if n := net.node(s.Name); n == nil {
					addf("%s %q: the network has no such node", side.what, s.Name)
				} else if !side.fits(*n) {
					addf("node %q of the network can't be an %s", s.Name, side.what)
				}
			}
			if err := s.validate(); err != nil {
				addf("%s %q: %v", side.what, s.Name, err)
			}
		}
	}
	if r.NeedDerivatives() && !slices.ContainsFunc(r.Outputs, func(s IoSpecification) bool { return s.HasDeriv }) {
		addf("derivatives are wanted, but no output comes with one (has_deriv)")
	}
	return errlist.Join(errs)
}

// validate checks the indexes of an input or output.
func (s *IoSpecification) validate() error {
	if len(s.Indexes) == 0 {
		return errors.New("no rows")
	}
	for _, x := range s.Indexes {
		if x.T == index.NoTime {
			return fmt.Errorf("row %v has no time", x)
		}
		if x.N < 0 {
			return fmt.Errorf("row %v has a negative n", x)
		}
	}
	// A set of the rows would take several times their memory.
	sorted := slices.Clone(s.Indexes)
	slices.SortFunc(sorted, index.Compare)
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return fmt.Errorf("row %v is there twice", sorted[i])
		}
	}
	return nil
}

// Write writes the request in Kaldi's format.
func (r *Request) Write(w *kaldiio.Writer) { r.fields(&wire{w: w}) }

// ReadRequest reads a request in the format of Write. Errors are of type *kaldiio.Error.
func ReadRequest(r *kaldiio.Reader) (*Request, error) {
	r.Limit(maxFile)
	req, f := &Request{}, &wire{r: r}
	if req.fields(f); f.err != nil {
		return nil, f.err
	}
	return req, nil
}

func (r *Request) fields(f *wire) {
	f.tokens("<ComputationRequest>")
	list(f, "<NumInputs>", "<Inputs>", recordSize, &r.Inputs, (*wire).specification)
	list(f, "<NumOutputs>", "<Outputs>", recordSize, &r.Outputs, (*wire).specification)
	f.bool("<NeedModelDerivative>", &r.NeedModelDerivative)
	f.bool("<StoreComponentStats>", &r.StoreComponentStats)
	f.end("</ComputationRequest>")
}

func (f *wire) specification(s *IoSpecification) {
	f.tokens("<IoSpecification>")
	value(f, &s.Name, (*kaldiio.Reader).Token, (*kaldiio.Writer).Token)
	n := uint64(len(s.Indexes))
	f.tokens("<NumIndexes>")
	value(f, &n, (*kaldiio.Reader).Uint64, (*kaldiio.Writer).Uint64)
	f.tokens("<Indexes>")
	f.indexes(&s.Indexes)
	if uint64(len(s.Indexes)) != n {
		f.failf("%d indexes, but %d are announced", len(s.Indexes), n)
	}
	f.bool("<HasDeriv>", &s.HasDeriv)
	f.end("</IoSpecification>")
}
