package tool

import (
	"context"
	"errors"

	"github.com/nnopt/nnopt/tool/internal/view"
)

// errNoServer says why a page is not served: in a browser there is no network to listen on, and the
// packages for it would make up a fifth of the program.
var errNoServer = errors.New("this program can't serve pages")

func isAddress(string) error { return errNoServer }

func (f *viewFlags) serve(context.Context, *Console, string, *view.Subject, view.Input) error {
	return errNoServer
}
