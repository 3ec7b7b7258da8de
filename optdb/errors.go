package optdb

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-multierror"
)

// What can be wrong with a registration, and with a query. Errors of this package
// are found by [errors.Is] as these, also when several are reported together.
var (
	// ErrName is the error for a name or a tag that no query can write: one with
	// other bytes than letters, digits, "_", and inside of it ".", "-" and ":".
	ErrName = errors.New("bad name")
	// ErrDuplicate is the error for a second entry of a name.
	ErrDuplicate = errors.New("name is taken")
	// ErrTagIsName is the error for a tag that is the name of another entry.
	ErrTagIsName = errors.New("tag is the name of another entry")
	// ErrKind is the error for something that the database can't hold.
	ErrKind = errors.New("wrong kind of entry")
	// ErrPosition is the error for a position that is not a finite number.
	ErrPosition = errors.New("bad position")
	// ErrInplace is the error for in-place rewriters before [PositionInplace].
	ErrInplace = errors.New("in-place rewriter before position 50")
	// ErrNoDoc is the error for an entry that does not say what it does.
	ErrNoDoc = errors.New("no documentation")
	// ErrOrder is the error for positions that contradict a declared order, and
	// for declared orders that contradict each other.
	ErrOrder = errors.New("wrong order")
	// ErrUnknownEntry is the error for the name of an entry that does not exist.
	ErrUnknownEntry = errors.New("unknown entry")
	// ErrUnknownTag is the error for a tag in a query that no entry has.
	ErrUnknownTag = errors.New("unknown tag")
	// ErrNested is the error for a database that would be inside of itself.
	ErrNested = errors.New("database inside of itself")
)

// joined reports several faults as one error, and none as nil.
func joined(faults []error) error {
	switch len(faults) {
	case 0:
		return nil
	case 1:
		return faults[0]
	}
	return &multierror.Error{Errors: faults, ErrorFormat: func(list []error) string {
		s := fmt.Sprintf("%d faults:", len(list))
		for _, e := range list {
			s += "\n\t" + e.Error()
		}
		return s
	}}
}
