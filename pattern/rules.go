package pattern

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/internal/errlist"
	"github.com/nnopt/nnopt/internal/fileio"
)

// ParseRules reads a file of rules:
//
//	# The logarithm of an exponential is its argument.
//	local_log_exp: canonicalize specialize; unsafe_nan
//	    (log (exp x)) => x
//
// A rule is a sentence behind "#", a line with its name, its groups and, behind ";", its tags, and
// one or more indented lines with a [Rewrite] each. An indented line that ends in "=>" or "&&", or
// whose parentheses are open, goes on in the next. In place of rewrites there may be a line "Go:"
// that says why the rule is a function of the program. A comment that is followed by an empty line
// belongs to no rule. name names the file in errors.
//
// The errors of all rules are returned together; each gives file and line, and wraps [ErrSyntax].
func ParseRules(name, text string) ([]Rule, error) {
	p := rulesParser{file: name, names: make(map[string]int)}
	return p.parse(text)
}

// ParseHeads reads a file of rules as [ParseRules] does, but passes over the rewrites: the rules
// have no cases, and the text of those that it does not read may be at fault.
func ParseHeads(name, text string) ([]Rule, error) {
	p := rulesParser{file: name, names: make(map[string]int), heads: true}
	return p.parse(text)
}

func (p *rulesParser) parse(text string) ([]Rule, error) {
	// To some editors a carriage return alone ends a line. To Go it does not, and a file that begins with a
	// comment would be a comment.
	for line := range strings.Lines(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")) {
		p.line++
		p.read(strings.TrimSuffix(line, "\n"))
	}
	if p.pending.Len() > 0 {
		p.fault(p.line, "the last rewrite is not complete: %s", p.pending.String())
	}
	p.finish()
	return p.rules, errlist.Join(p.faults)
}

// maxRewrite bounds the text of a rewrite in a file, in bytes.
const maxRewrite = 1 << 16

type rulesParser struct {
	file    string
	line    int
	doc     []string
	rules   []Rule
	open    bool            // the last rule may get more cases
	pending strings.Builder // the lines of a rewrite that is not complete
	begun   int             // the line on which it begins
	depth   int             // the parentheses that are open in it
	arrow   bool            // it has "=>"
	names   map[string]int  // lines
	heads   bool            // pass over rewrites
	faults  []error
}

func (p *rulesParser) fault(line int, format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("%w: %s:%d: %s", ErrSyntax, p.file, line, fmt.Sprintf(format, fileio.Excerpts(args)...)))
}

// read reads one line.
func (p *rulesParser) read(line string) {
	text := strings.TrimSpace(line)
	indented := text != "" && text != line && strings.IndexAny(line, " \t") == 0
	switch {
	// Indentation decides, so that a mistake in one rule can't take in the next: what begins in the
	// first column ends everything before it.
	case indented && !strings.HasPrefix(text, "#"):
		p.rewrite(text)
	case p.pending.Len() > 0:
		p.fault(p.line, "the rewrite above is not complete: %s", p.pending.String())
		p.begin()
		p.read(line)
	case text == "":
		p.doc = nil
		p.finish()
	case strings.HasPrefix(text, "#"):
		if !indented {
			p.finish()
			p.doc = append(p.doc, strings.TrimSpace(strings.TrimPrefix(text, "#")))
		}
	default:
		p.finish()
		p.head(text)
	}
}

// finish ends the last rule.
func (p *rulesParser) finish() {
	if !p.open {
		return
	}
	p.open = false
	switch r := p.rules[len(p.rules)-1]; {
	case len(r.Cases) == 0 && r.Go == "" && len(p.faults) == 0 && !p.heads:
		p.fault(r.Line, "%s has no rewrite", r.Name)
	case len(r.Cases) > 0 && r.Go != "":
		p.fault(r.Line, "%s has rewrites, and is a Go function", r.Name)
	}
}

// head reads the line "name: group group; tag tag".
func (p *rulesParser) head(text string) {
	name, rest, ok := strings.Cut(text, ":")
	if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t(") {
		p.fault(p.line, "%q is not \"name: groups; tags\", and a rewrite is indented", text)
		return
	}
	if at, twice := p.names[name]; twice {
		p.fault(p.line, "%s is already defined on line %d", name, at)
	}
	p.names[name] = p.line
	groups, tags, _ := strings.Cut(rest, ";")
	p.rules = append(p.rules, Rule{
		Name: name, Doc: strings.Join(strings.Fields(strings.Join(p.doc, " ")), " "), Groups: strings.Fields(groups), Tags: strings.Fields(tags), File: p.file, Line: p.line,
	})
	p.doc, p.open = nil, true
}

// rewrite reads an indented line.
func (p *rulesParser) rewrite(text string) {
	reason, inGo := strings.CutPrefix(text, goPrefix)
	inGo = inGo && p.pending.Len() == 0
	if p.heads && !inGo {
		return
	}
	if !inGo && !p.complete(text) {
		return
	}
	rewrite := p.pending.String()
	p.begin()
	switch {
	case len(rewrite) > maxRewrite:
		p.fault(p.line, "a rewrite of more than %d bytes", maxRewrite)
		return
	case !p.open:
		p.fault(p.line, "a rewrite without the name of a rule above it")
		return
	}
	rule := &p.rules[len(p.rules)-1]
	if inGo {
		rule.Go = strings.TrimSpace(reason)
		return
	}
	r, err := ParseRewrite(rewrite)
	if err != nil {
		p.faults = append(p.faults, fmt.Errorf("%s:%d: %w", p.file, p.line, err))
		return
	}
	r.Line = p.begun
	rule.Cases = append(rule.Cases, r)
}

// goPrefix begins the line of a rule that is a Go function.
const goPrefix = "Go:"

// begin forgets the rewrite that was read last.
func (p *rulesParser) begin() {
	p.pending.Reset()
	p.depth, p.arrow = 0, false
}

// complete adds a line to a rewrite, and reports whether the rewrite does not go on in the next
// one. What decides that is kept up to date, so that the lines before are not read again for each
// line.
func (p *rulesParser) complete(line string) bool {
	if p.pending.Len() > 0 {
		p.pending.WriteByte(' ')
	} else {
		p.begun = p.line
	}
	p.pending.WriteString(line)
	p.depth += strings.Count(line, "(") - strings.Count(line, ")")
	p.arrow = p.arrow || strings.Contains(line, "=>")
	if p.pending.Len() > maxRewrite {
		return true
	}
	return p.arrow && p.depth <= 0 && !strings.HasSuffix(line, "=>") && !strings.HasSuffix(line, "&&")
}
