package kaldiio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

// ContinueTable opens an archive with a script, ark,scp:, that an earlier writer may have left at any
// point, for example because its process was killed or power was lost. It keeps every whole object, lists
// in the script those that it lacks, cuts off what is torn, and returns a writer that goes on from there,
// and the keys of what is kept. Of the objects that the script lists it looks at the heads, and cuts at
// the first one that is damaged. One that is not listed has to be without a page of zeros, as a
// loss of power leaves them. The function pass reads an object, like (*Reader).Matrix. Missing files are
// created. If the files are not an archive and its script, they are left alone, and the error wraps
// ErrSpecifier.
func ContinueTable[T any](o *Opener, wspecifier string, write func(*Writer, T), pass func(*Reader) error) (*TableWriter[T], []string, error) {
	spec, err := ParseWspecifier(wspecifier)
	if err != nil {
		return nil, nil, err
	}
	if !spec.HasArchive || !spec.HasScript {
		return nil, nil, fmt.Errorf("wspecifier %q: only a table with an archive and a script, ark,scp:, can be continued: %w", fileio.Excerpt(wspecifier, 0), ErrSpecifier)
	}
	for _, name := range []string{spec.Archive, spec.Script} {
		if err := checkContinued(name); err != nil {
			return nil, nil, err
		}
	}
	archive, err := os.OpenFile(spec.Archive, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, nil, err
	}
	left := &remains{hasty: o.hasty, archive: archive, name: spec.Archive, script: spec.Script, pass: pass}
	// Nothing is changed until it is certain that these files are an archive and its script:
	// whoever names the wrong file must not lose it.
	if err := left.recover(o.context()); err != nil {
		archive.Close()
		return nil, nil, err
	}
	script, err := os.OpenFile(spec.Script, os.O_WRONLY, 0)
	if err == nil {
		if _, err = script.Seek(left.lines, io.SeekStart); err != nil {
			script.Close()
		}
	}
	if err != nil {
		archive.Close()
		return nil, nil, err
	}
	t := &TableWriter[T]{opener: o, spec: spec, write: write, outputs: []io.WriteCloser{archive, script},
		archive: NewWriter(archive, !spec.text), ends: []end{{archive: left.end, script: left.lines}}}
	t.script = NewWriter(lastingScript[T]{t}, false)
	t.archive.n, t.script.n = left.end, left.lines
	t.stopWith(o.context())
	return t, left.keys, nil
}

// checkContinued returns an error unless a name is that of a regular file or of none.
func checkContinued(name string) error {
	if name == "" || name == "-" || name[0] == '|' {
		return badName(name, "only files can be continued")
	}
	if err := checkOutputFile(name); err != nil {
		return err
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return badName(name, "only regular files can be continued")
	}
	return nil
}

// remains is what a writer left of an archive and its script.
type remains struct {
	archive      *os.File
	name, script string
	pass         func(*Reader) error
	hasty        bool

	size  int64    // of the archive
	keys  []string // of the whole objects
	end   int64    // of them in the archive
	lines int64    // the size of their lines in the script
	text  []byte   // the script
}

// recover finds the whole objects and makes the files end after them.
func (l *remains) recover(ctx context.Context) error {
	info, err := l.archive.Stat()
	if err != nil {
		return err
	}
	l.size = info.Size()
	if l.text, err = fileio.ReadFile(l.script, maxScript); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	old := l.text
	lines, err := l.readScript()
	if err != nil {
		return err
	}
	// There are three kinds of objects, in this order in the archive: those that the script lists,
	// which were synced before; those that were written but are not listed yet; and perhaps a torn
	// one. The first may be many, and only their heads and the last of them are read. The others
	// are few and are read in full.
	l.keepListed(lines)
	if err := l.keepUnlisted(ctx); err != nil {
		return err
	}
	if l.end == 0 && len(lines) == 0 {
		if err := l.checkHead(); err != nil {
			return err
		}
	}
	// From here on the files change: first the archive loses what is torn, then the script is
	// replaced. If this is interrupted in between, the next call finds the same objects.
	if err := l.archive.Truncate(l.end); err != nil {
		return err
	}
	if _, err := l.archive.Seek(l.end, io.SeekStart); err != nil {
		return err
	}
	l.lines = int64(len(l.text))
	if bytes.Equal(old, l.text) && old != nil {
		return nil
	}
	// The same promise as in writing: a listed object survives a loss of power.
	if !l.hasty { // before the script lists what it lacked
		if err := fileio.Sync(l.archive); err != nil {
			return err
		}
	}
	return fileio.Write(ctx, l.script, func(f io.Writer) error {
		_, err := f.Write(l.text)
		return err
	})
}

// A listed object is a line of the script.
type listed struct {
	key        string
	at         int64 // in the archive, after the key
	begin, end int   // of the line in the script
}

// readScript returns the lines of the script up to the first one that is torn.
func (l *remains) readScript() (lines []listed, err error) {
	begin := 0
	for {
		n := bytes.IndexByte(l.text[begin:], '\n')
		if n < 0 {
			return lines, nil
		}
		line, err := ParseScriptLine(string(l.text[begin : begin+n]))
		if err != nil {
			// A torn first line looks like this as well, but a script of one torn line has no
			// newline, and so ended the loop above.
			if len(lines) == 0 {
				return nil, badName(l.script, "this is no script: "+err.Error())
			}
			return lines, nil
		}
		rest, ok := strings.CutPrefix(line.Name, l.name+":")
		name, at := splitOffset(line.Name)
		if !ok || name != l.name || line.HasRange || strings.Trim(rest, "0123456789") != "" {
			return nil, badName(l.script, fmt.Sprintf("key %s is in %s, so this is not the script of %s", line.Key, name, l.name))
		}
		lines = append(lines, listed{line.Key, at, begin, begin + n + 1})
		begin += n + 1
	}
}

// keepListed keeps the listed objects up to the last one that is whole. Since objects are written in
// order, and lines after objects, those before it are whole, too, unless the disk lost something: then a
// head is damaged.
func (l *remains) keepListed(lines []listed) {
	k := 0
	// A head costs one small read and finds both a script of another archive and pages that a file
	// system lost.
	for k < len(lines) && l.hasHead(&lines[k]) {
		k++
	}
	for ; k > 0; k-- {
		line := lines[k-1]
		begin := line.at - int64(len(line.key)) - 1
		if begin < 0 {
			continue
		}
		// Only the last object needs to be read to its end, for that is where writing goes on. If
		// it is torn, the one before it is tried.
		key, end, err := l.object(begin)
		if err == nil && key == line.key {
			l.end = end
			break
		}
	}
	var kept bytes.Buffer
	for _, line := range lines[:k] {
		l.keys = append(l.keys, line.key)
		fmt.Fprintf(&kept, "%s %s:%d\n", line.key, l.name, line.at)
	}
	l.text = kept.Bytes()
}

// hasHead reports whether a listed object begins as one does: with its key, and as a binary or a text
// object.
func (l *remains) hasHead(line *listed) bool {
	begin := line.at - int64(len(line.key)) - 1
	head := make([]byte, len(line.key)+4)
	if begin < 0 {
		return false
	}
	n, _ := l.archive.ReadAt(head, begin)
	rest, ok := strings.CutPrefix(string(head[:n]), line.key+" ")
	return ok && rest != "" && (rest[0] != 0 || len(rest) > 2 && rest[1] == 'B' && rest[2] != 0)
}

// pageSize is the size of what a file system writes or loses as a whole, or a part of that.
const pageSize = 4096

// lost reports whether a page between two offsets of the archive has nothing but zeros.
func (l *remains) lost(begin, end int64) (bool, error) {
	var page, zeros [pageSize]byte
	for at := (begin + pageSize - 1) / pageSize * pageSize; at+pageSize <= end; at += pageSize {
		if _, err := l.archive.ReadAt(page[:], at); err != nil {
			return false, err
		}
		if page == zeros {
			return true, nil
		}
	}
	return false, nil
}

// keepUnlisted keeps the whole objects that follow those that are listed, and adds their lines.
func (l *remains) keepUnlisted(ctx context.Context) error {
	for l.end < l.size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		key, end, err := l.object(l.end)
		if err != nil || key == "" {
			return nil
		}
		// After a loss of power a file may have its full size but zeros where data never reached
		// the disk. A binary matrix of zeros is a valid object, so reading it proves nothing.
		if lost, err := l.lost(l.end, end); err != nil || lost {
			return err
		}
		l.text = fmt.Appendf(l.text, "%s %s:%d\n", key, l.name, l.end+int64(len(key))+1)
		l.keys = append(l.keys, key)
		l.end = end
	}
	return nil
}

// checkHead returns an error unless the archive begins as a torn archive can: with a key and an
// object, as far as they go.
func (l *remains) checkHead() error {
	head := make([]byte, min(l.size, maxTokenSize+4))
	if _, err := l.archive.ReadAt(head, 0); err != nil {
		return err
	}
	key, rest, _ := bytes.Cut(head, []byte(" "))
	ok := len(key) <= maxTokenSize && !bytes.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c == 0x7f })
	if ok && len(rest) > 0 {
		const binary = "\x00B"
		n := min(len(rest), len(binary))
		ok = rest[0] == ' ' || rest[0] == '[' || string(rest[:n]) == binary[:n]
	}
	if !ok {
		return badName(l.name, "this is no archive")
	}
	return nil
}

// object reads the object whose key begins at an offset of the archive, and returns its end.
func (l *remains) object(begin int64) (key string, end int64, err error) {
	r := newReader(io.NewSectionReader(l.archive, begin, l.size-begin), l.name)
	r.base = begin
	r.size = l.size
	key, more, err := r.archiveKey()
	if err != nil || !more {
		return "", 0, err
	}
	if r.Offset() != begin+int64(len(key))+1 {
		return "", 0, r.Errorf("there is a gap before or after key %s", key)
	}
	if err := r.detectBinary(); err != nil {
		return "", 0, err
	}
	if err := l.pass(r); err != nil {
		return "", 0, err
	}
	end = r.Offset()
	// In text, "1.2" may be the beginning of "1.25". Only a newline proves that the object is
	// whole.
	if !r.Binary() { // a number or a line may go on
		var last [1]byte
		if _, err := l.archive.ReadAt(last[:], end-1); err != nil || last[0] != '\n' {
			return "", 0, r.truncated("the end of a line")
		}
	}
	return key, end, nil
}
