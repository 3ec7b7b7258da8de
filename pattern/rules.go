package pattern

import (
	"bufio"
	"fmt"
	"strings"

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

// ParseHeads reads a file of rules as [ParseRules] does, but passes over the rewrites: the rules have
// no cases, and the text of those that it does not read may be at fault.
func ParseHeads(name, text string) ([]Rule, error) {
	p := rulesParser{file: name, names: make(map[string]int), heads: true}
	return p.parse(text)
}

func (p *rulesParser) parse(text string) ([]Rule, error) {
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		p.line++
		p.read(lines.Text())
	}
	p.finish()
	if p.pending != "" {
		p.fault(p.line, "the last rewrite has no end: %s", p.pending)
	}
	return p.rules, joined(p.faults)
}

// maxRewrite and maxLines bound the text of a rewrite in a file. Each line is looked at again with
// those before it.
const (
	maxRewrite = 1 << 16
	maxLines   = 1000
)

type rulesParser struct {
	file    string
	line    int
	doc     []string
	rules   []Rule
	open    bool           // the last rule may get more cases
	pending string         // the lines of a rewrite that is not complete
	lines   int            // of the rewrite
	names   map[string]int // lines
	heads   bool           // pass over rewrites
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
	case indented && !strings.HasPrefix(text, "#"):
		p.rewrite(text)
	case p.pending != "":
		p.fault(p.line, "the rewrite above has no end: %s", p.pending)
		p.pending = ""
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
		p.fault(p.line, "%s stands in line %d, too", name, at)
	}
	p.names[name] = p.line
	groups, tags, _ := strings.Cut(rest, ";")
	p.rules = append(p.rules, Rule{
		Name: name, Doc: strings.Join(strings.Fields(strings.Join(p.doc, " ")), " "), Groups: strings.Fields(groups), Tags: strings.Fields(tags), Line: p.line,
	})
	p.doc, p.open = nil, true
}

// rewrite reads an indented line.
func (p *rulesParser) rewrite(text string) {
	p.lines++
	if p.pending != "" {
		text = p.pending + " " + text
	} else {
		p.lines = 1
	}
	p.pending = ""
	if p.heads && !strings.HasPrefix(text, goPrefix) {
		return
	}
	if len(text) > maxRewrite || p.lines > maxLines {
		p.fault(p.line, "a rewrite of more than %d bytes or %d lines", maxRewrite, maxLines)
		return
	}
	if !strings.HasPrefix(text, goPrefix) && unfinished(text) {
		p.pending = text
		return
	}
	if !p.open {
		p.fault(p.line, "a rewrite without the name of a rule above it")
		return
	}
	rule := &p.rules[len(p.rules)-1]
	if reason, ok := strings.CutPrefix(text, goPrefix); ok {
		rule.Go = strings.TrimSpace(reason)
		return
	}
	r, err := ParseRewrite(text)
	if err != nil {
		p.faults = append(p.faults, fmt.Errorf("%s:%d: %w", p.file, p.line, err))
		return
	}
	rule.Cases = append(rule.Cases, r)
}

// goPrefix begins the line of a rule that is a Go function.
const goPrefix = "Go:"

// unfinished reports whether a rewrite goes on in the next line.
func unfinished(text string) bool {
	return strings.HasSuffix(text, "=>") || strings.HasSuffix(text, "&&") || !strings.Contains(text, "=>") ||
		strings.Count(text, "(") > strings.Count(text, ")")
}
