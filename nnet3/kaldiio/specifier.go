package kaldiio

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

// ErrSpecifier means that a text is not an rspecifier, a wspecifier or a file name of Kaldi's.
var ErrSpecifier = errors.New("malformed specifier")

// Rspecifier says where to read a table from, as in "ark:feats.ark" or "scp,p:feats.scp".
type Rspecifier struct {
	Script       bool   // the table is a script (scp), not an archive (ark)
	Name         string // of the archive or script, an rxfilename
	once         bool   // o: no key is looked up twice
	Permissive   bool   // p: objects that can't be read count as missing
	sorted       bool   // s: the keys are sorted
	calledSorted bool   // cs: keys are looked up in order
	background   bool   // bg: reading ahead is wanted
}

// ParseRspecifier parses an rspecifier. The error wraps ErrSpecifier.
func ParseRspecifier(text string) (Rspecifier, error) {
	options, name, bad, err := splitSpecifier("rspecifier", text)
	if err != nil {
		return Rspecifier{}, err
	}
	s := Rspecifier{Name: name}
	flags := map[string]*bool{"o": &s.once, "p": &s.Permissive, "s": &s.sorted, "cs": &s.calledSorted}
	kinds := 0
	for option := range strings.SplitSeq(options, ",") {
		plain, negated := strings.CutPrefix(option, "n")
		switch flag := flags[plain]; {
		case flag != nil:
			*flag = !negated
		case option == "ark", option == "scp":
			kinds++
			s.Script = option == "scp"
		case option == "bg":
			s.background = true
		case option == "b", option == "t": // Kaldi allows them here, where they mean nothing
		default:
			return Rspecifier{}, bad(fmt.Sprintf("unknown option %q (known: ark scp o no p np s ns cs ncs bg b t)", fileio.Excerpt(option, 0)))
		}
	}
	if kinds != 1 {
		return Rspecifier{}, bad("want either ark or scp, once")
	}
	return s, nil
}

// Wspecifier says where to write a table, as in "ark,t:-" or "ark,scp:out.ark,out.scp".
type Wspecifier struct {
	Archive    string // a wxfilename; see HasArchive
	Script     string // a wxfilename, or, without an archive, the script that names the files; see HasScript
	HasArchive bool
	HasScript  bool
	text       bool // t: objects are written in text
	flush      bool // f: each object is flushed
	permissive bool // p: with a script alone, keys that it lacks are skipped
}

// ParseWspecifier parses a wspecifier. The error wraps ErrSpecifier.
func ParseWspecifier(text string) (Wspecifier, error) {
	options, name, bad, err := splitSpecifier("wspecifier", text)
	if err != nil {
		return Wspecifier{}, err
	}
	fail := func(why string) (Wspecifier, error) { return Wspecifier{}, bad(why) }
	var s Wspecifier
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "ark":
			if s.HasArchive || s.HasScript {
				return fail("ark comes once, before scp")
			}
			s.HasArchive = true
		case "scp":
			if s.HasScript {
				return fail("scp comes once")
			}
			s.HasScript = true
		case "b", "t":
			s.text = option == "t"
		case "f", "nf":
			s.flush = option == "f"
		case "p":
			s.permissive = true
		default:
			return fail(fmt.Sprintf("unknown option %q (known: ark scp b t f nf p)", fileio.Excerpt(option, 0)))
		}
	}
	switch {
	case s.HasArchive && s.HasScript:
		var ok bool
		if s.Archive, s.Script, ok = strings.Cut(name, ","); !ok {
			return fail("ark,scp: needs two file names with a comma between them")
		}
		if s.Archive == s.Script {
			return fail("the archive and the script can't be one file")
		}
	case s.HasArchive:
		s.Archive = name
	case s.HasScript:
		s.Script = name
	default:
		return fail("want ark, scp or ark,scp")
	}
	return s, nil
}

// splitSpecifier splits a specifier at its colon. The function bad makes errors about it.
func splitSpecifier(kind, text string) (options, name string, bad func(why string) error, err error) {
	bad = func(why string) error {
		return fmt.Errorf("%s %q: %s: %w", kind, fileio.Excerpt(text, 0), why, ErrSpecifier)
	}
	options, name, ok := strings.Cut(text, ":")
	if !ok {
		err = bad("want ark: or scp: and a file name, as in ark:" + fileio.Excerpt(text, 0))
	} else if name != strings.TrimRight(name, " \t\r\n") {
		err = bad("it ends with white space")
	}
	return options, name, bad, err
}
