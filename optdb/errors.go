package optdb

import (
	"errors"
)

// The errors of registrations and queries. [errors.Is] finds them also where
// several faults are reported together.
var (
	// ErrName is the error for a name or a tag that no query can contain. Allowed
	// are letters, digits and "_", and after the first byte ".", "-" and ":".
	ErrName = errors.New("bad name")
	// ErrDuplicate is the error for a second entry of the same name.
	ErrDuplicate = errors.New("name is taken")
	// ErrTagIsName is the error for a tag that is the name of another entry.
	ErrTagIsName = errors.New("tag is the name of another entry")
	// ErrKind is the error for an entry that the database can't hold.
	ErrKind = errors.New("wrong kind of entry")
	// ErrPosition is the error for a position that is not a finite number.
	ErrPosition = errors.New("bad position")
	// ErrInplace is the error for in-place rewriters before [PositionInplace].
	ErrInplace = errors.New("in-place rewriter before position 50")
	// ErrNoDoc is the error for an entry without documentation.
	ErrNoDoc = errors.New("no documentation")
	// ErrOrder is the error for constraints that contradict positions or each
	// other.
	ErrOrder = errors.New("wrong order")
	// ErrUnknownEntry is the error for an entry that does not exist.
	ErrUnknownEntry = errors.New("unknown entry")
	// ErrUnknownTag is the error for a tag in a query that no entry has.
	ErrUnknownTag = errors.New("unknown tag")
	// ErrSetting is the error for a setting that a rewriter does not have, for a
	// value that it can't have, or for settings of an entry that the query leaves out.
	ErrSetting = errors.New("bad setting")
	// ErrNested is the error for a database that would be inside itself.
	ErrNested = errors.New("database inside itself")
)
