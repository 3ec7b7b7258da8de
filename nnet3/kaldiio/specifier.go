package kaldiio

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSpecifier means that a text is no rspecifier, wspecifier or file name in Kaldi's sense.
var ErrSpecifier = errors.New("malformed specifier")

// Rspecifier says where a table is to be read from, as in "ark:feats.ark" or "scp,p:feats.scp".
type Rspecifier struct {
	Script       bool   // the table is a script (scp) and not an archive (ark)
	Name         string // of the archive or script, an rxfilename
	Once         bool   // o: no key is asked for twice
	Permissive   bool   // p: what can't be read counts as missing
	Sorted       bool   // s: the keys are sorted
	CalledSorted bool   // cs: keys are asked for in order
	Background   bool   // bg: reading ahead is wanted
}

// ParseRspecifier parses an rspecifier.
func ParseRspecifier(text string) (Rspecifier, error) {
	bad := func(why string) (Rspecifier, error) {
		return Rspecifier{}, fmt.Errorf("rspecifier %q: %s: %w", text, why, ErrSpecifier)
	}
	options, name, ok := strings.Cut(text, ":")
	if !ok {
		return bad("want ark: or scp: and a file name, as in ark:" + text)
	}
	if name != strings.TrimRight(name, " \t\r\n") {
		return bad("there is space at the end")
	}
	s := Rspecifier{Name: name}
	kinds := 0
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "ark":
			kinds++
		case "scp":
			kinds++
			s.Script = true
		case "o":
			s.Once = true
		case "no":
			s.Once = false
		case "p":
			s.Permissive = true
		case "np":
			s.Permissive = false
		case "s":
			s.Sorted = true
		case "ns":
			s.Sorted = false
		case "cs":
			s.CalledSorted = true
		case "ncs":
			s.CalledSorted = false
		case "bg":
			s.Background = true
		case "b", "t": // Kaldi allows them here, where they mean nothing
		default:
			return bad(fmt.Sprintf("unknown option %q (known: ark scp o no p np s ns cs ncs bg b t)", option))
		}
	}
	if kinds != 1 {
		return bad("want either ark or scp, once")
	}
	return s, nil
}

// Wspecifier says where a table is to be written, as in "ark,t:-" or "ark,scp:out.ark,out.scp".
type Wspecifier struct {
	Archive    string // a wxfilename; see HasArchive
	Script     string // a wxfilename, or, without an archive, the script that says where each object goes; see HasScript
	HasArchive bool
	HasScript  bool
	Text       bool // t: objects are written in text
	Flush      bool // f: each object is flushed
	Permissive bool // p: with a script alone, keys that it lacks are skipped
}

// ParseWspecifier parses a wspecifier.
func ParseWspecifier(text string) (Wspecifier, error) {
	bad := func(why string) (Wspecifier, error) {
		return Wspecifier{}, fmt.Errorf("wspecifier %q: %s: %w", text, why, ErrSpecifier)
	}
	options, name, ok := strings.Cut(text, ":")
	if !ok {
		return bad("want ark: or scp: and a file name, as in ark:" + text)
	}
	if name != strings.TrimRight(name, " \t\r\n") {
		return bad("there is space at the end")
	}
	var s Wspecifier
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "ark":
			if s.HasArchive || s.HasScript {
				return bad("ark comes once, before scp")
			}
			s.HasArchive = true
		case "scp":
			if s.HasScript {
				return bad("scp comes once")
			}
			s.HasScript = true
		case "b":
			s.Text = false
		case "t":
			s.Text = true
		case "f":
			s.Flush = true
		case "nf":
			s.Flush = false
		case "p":
			s.Permissive = true
		default:
			return bad(fmt.Sprintf("unknown option %q (known: ark scp b t f nf p)", option))
		}
	}
	switch {
	case s.HasArchive && s.HasScript:
		if s.Archive, s.Script, ok = strings.Cut(name, ","); !ok {
			return bad("ark,scp: wants two file names with a comma between them")
		}
		if s.Archive == s.Script {
			return bad("the archive and the script can't be one file")
		}
	case s.HasArchive:
		s.Archive = name
	case s.HasScript:
		s.Script = name
	default:
		return bad("want ark, scp or ark,scp")
	}
	return s, nil
}
