package decodable

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// TableNames are rspecifiers of Kaldi's tables. All but Features may be empty.
type TableNames struct {
	Features       string // matrices, a row per frame
	Ivectors       string // vectors, by utterance, or with Speakers by speaker
	Speakers       string // the speaker of each utterance (utt2spk)
	OnlineIvectors string // matrices, by utterance
}

// Tables read utterances from Kaldi's tables: features in the order of their table, i-vectors by
// key.
type Tables struct {
	names    TableNames
	features *kaldiio.TableReader[kaldiio.Matrix]
	ivectors finder[[]float32]
	speakers finder[string]
	online   finder[kaldiio.Matrix]
	lookups  []io.Closer // those three, if they are open

	spare chan []float32 // elements of features that are no longer used

	told       error // the last error of Utterances
	read, size atomic.Int64
}

// A finder is the Lookup of a table, nil without one. Fields of the generic type would have it compiled again in
// every package that knows Tables.
type finder[T any] = func(key string) (T, bool, error)

// OpenTables opens tables. The error wraps ErrOptions, or is one of kaldiio's.
func OpenTables(o *kaldiio.Opener, names TableNames) (*Tables, error) {
	t := &Tables{names: names, spare: make(chan []float32, maxSpare)}
	switch {
	case names.Ivectors != "" && names.OnlineIvectors != "":
		return nil, fmt.Errorf("%w: i-vectors come either by utterance (ivectors) or online (online-ivectors), not both", ErrOptions)
	case names.Speakers != "" && names.Ivectors == "":
		return nil, fmt.Errorf("%w: speakers (utt2spk) need ivectors", ErrOptions)
	}
	err := t.open(o)
	if err != nil {
		t.Close()
		return nil, err
	}
	t.size.Store(-1)
	return t, nil
}

func (t *Tables) open(o *kaldiio.Opener) (err error) {
	if t.ivectors, err = lookup(t, o, t.names.Ivectors, kaldiio.VectorHolder()); err != nil {
		return err
	}
	if t.speakers, err = lookup(t, o, t.names.Speakers, kaldiio.Holder[string]{Read: (*kaldiio.Reader).Token}); err != nil {
		return err
	}
	if t.online, err = lookup(t, o, t.names.OnlineIvectors, kaldiio.MatrixHolder()); err != nil {
		return err
	}
	t.features, err = kaldiio.NewTableReader(o, t.names.Features, kaldiio.MatrixHolder())
	return err
}

// lookup opens a table for lookups. It returns nil if the name is empty.
func lookup[T any](t *Tables, o *kaldiio.Opener, name string, h kaldiio.Holder[T]) (finder[T], error) {
	if name == "" {
		return nil, nil
	}
	l, err := kaldiio.NewTableLookup(o, name, h)
	if err != nil {
		return nil, err
	}
	t.lookups = append(t.lookups, l)
	return l.Lookup, nil
}

// Except has Utterances leave out the utterances with unwanted keys. Call it before Utterances.
func (t *Tables) Except(unwanted func(key string) bool) { t.features.Except(unwanted) }

// Utterances yields the utterances. An utterance whose i-vector is missing or unreadable has an
// error, and so do unreadable features; then kaldiio.TableReader.Skip tells how the stream
// continues. Call Utterances only once.
//
// A run of a Scorer or Streamer gives the memory of features back to the tables, once the rows of
// an utterance are written.
func (t *Tables) Utterances() iter.Seq2[Utterance, error] {
	return func(yield func(Utterance, error) bool) {
		for {
			for t.next() {
				u := Utterance{Key: t.features.Key(), Features: kernel.Matrix(t.features.Value()), tables: t}
				t.note()
				if !yield(u, t.addIvectors(&u)) {
					return
				}
			}
			err := t.features.Err()
			if err == nil {
				return
			}
			// Where reading can continue, the error is one utterance's. The caller decides whether
			// to go on; after the last error it would only be told the same again by Close, hence
			// told.
			more, unread := t.features.Skip()
			t.note()
			if !more {
				t.told = err
			}
			if !yield(Utterance{}, unread) || !more {
				return
			}
		}
	}
}

// maxSpare is the number of features that are kept for the next ones, and maxSpareElements bounds
// each, so that one long utterance does not take its memory to the end.
const (
	maxSpare         = 4
	maxSpareElements = 1 << 20
)

// next reads the next features, in spare memory if there is some.
func (t *Tables) next() bool {
	select {
	case v := <-t.spare:
		t.features.Spare(v)
	default:
	}
	return t.features.Next()
}

// release gives the features back to the tables that they are from.
func (u *Utterance) release() {
	v := u.Features.Data
	if u.tables == nil || cap(v) > maxSpareElements {
		return
	}
	u.Features = kernel.Matrix{}
	select {
	case u.tables.spare <- v:
	default:
	}
}

// note records the position in the features.
func (t *Tables) note() {
	read, size := t.features.Position()
	t.read.Store(read)
	t.size.Store(size)
}

// Position returns how many bytes of the archive or script of features have been read, and its
// size. The size is -1 if it is unknown, as for standard input. Position is safe for concurrent
// use.
func (t *Tables) Position() (read, size int64) { return t.read.Load(), t.size.Load() }

// Unread returns the number of unread lines of the script of features, if it is a file, and of
// unread bytes. An unknown number of bytes is -1, and so is that of lines then, or if features are
// in an archive. Unread is safe for concurrent use.
func (t *Tables) Unread() (lines int, bytes int64) {
	read, size := t.Position()
	if size < 0 {
		return -1, -1
	}
	spec, err := kaldiio.ParseRspecifier(t.names.Features)
	if err != nil || !spec.Script {
		return -1, size - read
	}
	f, err := os.Open(spec.Name)
	if err != nil {
		return -1, size - read
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	for at := read; at < size; {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		lines += strings.Count(string(buf[:n]), "\n")
		if at += int64(n); at == size && n > 0 && buf[n-1] != '\n' {
			lines++
		}
		if err != nil {
			break
		}
	}
	return lines, size - read
}

// addIvectors looks up the i-vectors of an utterance.
func (t *Tables) addIvectors(u *Utterance) error {
	if t.ivectors != nil {
		key := u.Key
		if t.speakers != nil {
			speaker, ok, err := t.speakers(u.Key)
			if err != nil {
				return err
			}
			if !ok {
				return fmt.Errorf("%w: %s has no speaker for the utterance", ErrIvector, t.names.Speakers)
			}
			key = speaker
		}
		v, ok, err := t.ivectors(key)
		if err == nil && (!ok || len(v) == 0) {
			err = fmt.Errorf("%w for %s in %s", ErrIvector, key, t.names.Ivectors)
		}
		u.Ivector = v
		return err // there are no online i-vectors then
	}
	if t.online == nil {
		return nil
	}
	m, ok, err := t.online(u.Key)
	if err == nil && (!ok || m.Rows == 0) {
		err = fmt.Errorf("%w for %s in %s", ErrIvector, u.Key, t.names.OnlineIvectors)
	}
	u.OnlineIvectors = kernel.Matrix(m)
	return err
}

// Close closes the tables. It returns errors that Utterances has not yielded.
func (t *Tables) Close() error {
	var errs *multierror.Error
	if t.features != nil {
		if err := t.features.Close(); err != nil && !errors.Is(err, t.told) {
			errs = multierror.Append(errs, err)
		}
	}
	for _, l := range t.lookups {
		errs = multierror.Append(errs, l.Close())
	}
	if errs != nil && errs.Len() == 1 {
		return errs.Errors[0]
	}
	return errs.ErrorOrNil()
}
