package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/tool/internal/view"
)

// maxSubjects is how many subjects are kept to ask about.
const maxSubjects = 4

// An Engine does what pages ask a [Service] for. Its errors about what was typed are *Fault.
type Engine interface {
	// Optimize optimizes an expression or a file.
	Optimize(ctx context.Context, in view.Input) (*view.Subject, error)
	// Check has rules checked by the machine, see package rulecheck.
	Check(ctx context.Context, rules, variables string) ([]Checked, error)
	// Find searches for rules, and tells each one when it is found.
	Find(ctx context.Context, in Search, found func(Discovery)) (*SearchEnd, error)
	// Choices lists the passes of the database, and says which of them a query selects.
	Choices(query string) ([]Choice, error)
	// Try runs what was given and what became of it on the same random inputs.
	Try(ctx context.Context, in view.Input, seed uint64) (*Trial, error)
	// Export optimizes an input, and returns the result in a format, or what it cost: "model" is the
	// form that programs have for such graphs, "graph" and "dot" are graphs as text, "page" is a
	// page, and "text", "json", "pprof" and "trace" are profiles.
	Export(ctx context.Context, in view.Input, format string) ([]byte, error)
}

// A Fault is what is wrong with what was typed, or with a request. The answer to what was mistyped
// has the status 200.
type Fault struct {
	Text   string `json:"error"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"` // from 1, in bytes
}

func (f *Fault) Error() string { return f.Text }

// FaultText returns an error as the JSON of a Fault.
func FaultText(err error) []byte {
	var fault *Fault
	if !errors.As(err, &fault) {
		fault = &Fault{Text: err.Error()}
	}
	text, err := json.Marshal(fault)
	if err != nil {
		return []byte(`{"error": "an error that can't be written"}`)
	}
	return text
}

// Checked is what the machine finds about a rule.
type Checked struct {
	Name           string   `json:"name"`
	Rule           string   `json:"text"`
	Class          string   `json:"class"`
	Tags           []string `json:"tags,omitempty"`
	Kept           bool     `json:"ok"` // it is what its tags promise
	Counterexample string   `json:"counterexample,omitempty"`
}

// A Search says of which terms rules are searched for, as the flags of "nnopt rule find" do.
type Search struct {
	Ops       string `json:"ops"`
	Types     string `json:"types,omitempty"`
	Constants string `json:"constants,omitempty"`
	Size      int    `json:"size,omitempty"`
	Query     string `json:"query,omitempty"` // of what is known
}

// A Discovery is a rule that was found.
type Discovery struct {
	Name  string `json:"name"`
	Rule  string `json:"text"`
	File  string `json:"file"` // the rule as a file of rules has it
	Class string `json:"class"`
	// Before and After are what both sides cost.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// A SearchEnd says which rules are left at the end of a search, those that save most first; others
// follow from them.
type SearchEnd struct {
	Names   []string `json:"names"`
	Summary string   `json:"summary"`
}

// A Choice is a pass or rule that a query may select.
type Choice struct {
	Name     string      `json:"name"`
	Path     string      `json:"path"`
	Doc      string      `json:"doc,omitempty"`
	Tags     []string    `json:"tags,omitempty"`
	Dialect  string      `json:"dialect,omitempty"` // of the graphs that it is for; empty for all
	Settings [][2]string `json:"settings,omitempty"`
	Position float64     `json:"position"`
	Rule     bool        `json:"rule,omitempty"` // a node rewriter
	On       bool        `json:"on"`
}

// A Trial is a run of a graph, and of what became of it, on the same random inputs.
type Trial struct {
	Inputs  []string `json:"inputs"` // with their values, shortened
	Outputs []string `json:"outputs"`
	Differ  string   `json:"differ,omitempty"` // how the outputs differ, beyond rounding
	// Accepted says why outputs that differ are accepted.
	Accepted string `json:"accepted,omitempty"`
}

// A Service answers what a page asks, whatever carries the questions. It may be asked several things
// at once.
type Service struct {
	engine  Engine
	subject *view.Subject
	dir     string            // of the files that pages brought; empty for none
	files   map[string]string // other files that pages may name

	mu     sync.Mutex
	recent []recent // what was optimized, the last one last
}

// recent is a subject with its input as JSON, and the stamp of its file.
type recent struct {
	key     string
	subject *view.Subject
}

// NewService returns the service of a page. It begins with a subject, in is what that was made of.
// Files that the page names are those in dir.
func NewService(e Engine, s *view.Subject, in view.Input, dir string) *Service {
	// The recording is copied: the same one may also be written to a file, where there is nobody to
	// ask.
	live := *s.Recording
	live.Live = &in
	return &Service{engine: e, subject: &view.Subject{Recording: &live, Optimizer: s.Optimizer, Run: s.Run}, dir: dir, files: make(map[string]string)}
}

// Allow lets pages name a file that is elsewhere.
func (s *Service) Allow(name, path string) { s.files[name] = path }

// A part is told the parts of an answer that comes piece by piece, JSON of one line each.
type part func([]byte)

// questions are what pages ask, by name.
var questions = map[string]func(*Service, context.Context, []byte, part) ([]byte, error){
	"find":     find,
	"passes":   question(passes),
	"optimize": question(optimize),
	"check":    question(check),
	"whynot":   question(whyNot),
	"try":      question(try),
	"export":   export,
}

// Answer answers a question. The body is JSON or empty, and the answer is JSON, except for that to
// "export", which is a file. What comes before the answer to "find" is told piece by piece.
func (s *Service) Answer(ctx context.Context, name string, body []byte, piece func([]byte)) ([]byte, error) {
	ask := questions[name]
	if ask == nil {
		return nil, &Fault{Text: fmt.Sprintf("there is no question %q", fileio.Excerpt(name, 0))}
	}
	return ask(s, ctx, body, piece)
}

// question makes a function of a value that the body of a question has to a value of the answer. A
// question without a body leaves its value as it is.
func question[In, Out any](do func(*Service, context.Context, In) (Out, error)) func(*Service, context.Context, []byte, part) ([]byte, error) {
	return func(s *Service, ctx context.Context, body []byte, _ part) ([]byte, error) {
		var in In
		if err := decode(body, &in); err != nil {
			return nil, err
		}
		out, err := do(s, ctx, in)
		if err != nil {
			return nil, s.hide(err)
		}
		return json.Marshal(out)
	}
}

// errRequest says that a question is no JSON of its form.
var errRequest = errors.New("the request")

// decode reads the JSON of a question.
func decode(body []byte, in any) error {
	if len(body) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(in)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows the JSON object")
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errRequest, err)
	}
	return nil
}

// hide takes the folder of files, which means nothing to a user, out of an error.
func (s *Service) hide(err error) error {
	dir := s.dir + string(filepath.Separator)
	if s.dir == "" || !strings.Contains(err.Error(), dir) {
		return err
	}
	f := &Fault{Text: err.Error()}
	if was := (*Fault)(nil); errors.As(err, &was) {
		*f = *was
	}
	f.Text = strings.ReplaceAll(f.Text, dir, "")
	return f
}

// placed returns an input whose file is a path, and what tells the file from another one that had its
// name before.
func (s *Service) placed(in view.Input) (at view.Input, stamp string, err error) {
	if in.File == "" {
		return in, "", nil
	}
	path, ok := s.files[in.File]
	if !ok {
		// Pages know names alone. A path would open any file of this machine to them.
		if s.dir == "" || in.File != filepath.Base(in.File) || in.File == ".." {
			return in, "", noFile(in.File)
		}
		path = filepath.Join(s.dir, in.File)
	}
	info, err := os.Stat(path)
	if err != nil {
		return in, "", noFile(in.File)
	}
	in.File = path
	return in, fmt.Sprint(info.Size(), info.ModTime().UnixNano()), nil
}

func noFile(name string) *Fault {
	return &Fault{Text: fmt.Sprintf("there is no file %q", fileio.Excerpt(name, 0))}
}

func optimize(s *Service, ctx context.Context, in view.Input) (*view.Recording, error) {
	subject, err := s.find(ctx, in)
	if err != nil {
		return nil, err
	}
	return subject.Recording, nil
}

// find returns the subject of an input, from what was optimized before if it is there.
func (s *Service) find(ctx context.Context, in view.Input) (*view.Subject, error) {
	at, stamp, err := s.placed(in)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	key := string(text) + stamp
	// Questions why a rule does not fire come by the dozen for one expression, each with the whole
	// input: requests carry no state. To optimize it again for each would take most of the time.
	if have := s.kept(key); have != nil {
		return have, nil
	}
	subject, err := s.engine.Optimize(ctx, at)
	if err != nil {
		return nil, err
	}
	subject.Recording.Live = &in
	if in.File != "" {
		subject.Recording.Title, subject.Recording.Subject = in.File, in.File
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent = append(s.recent, recent{key, subject}); len(s.recent) > maxSubjects {
		s.recent = append([]recent(nil), s.recent[1:]...)
	}
	return subject, nil
}

// kept returns a subject that was optimized before, or nil.
func (s *Service) kept(key string) *view.Subject {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.recent {
		if r.key == key {
			return r.subject
		}
	}
	return nil
}

// A whyNotQuestion asks why rules do not fire at a node, after some steps. Without an expression and
// a file it is about the subject that the service began with.
type whyNotQuestion struct {
	view.Input
	Step int    `json:"step"`
	Node int32  `json:"node"`
	Rule string `json:"rule,omitempty"`
}

type answers struct {
	Misses any `json:"misses"` // as Subject.WhyNot returns them
}

func whyNot(s *Service, ctx context.Context, q whyNotQuestion) (out answers, err error) {
	subject := s.subject
	if q.Expr != "" || q.File != "" {
		if subject, err = s.find(ctx, q.Input); err != nil {
			return out, err
		}
	}
	if subject.Run == nil {
		return out, &Fault{Text: "there is only a profile, and no graph"}
	}
	out.Misses, err = subject.WhyNot(ctx, q.Step, q.Node, q.Rule)
	return out, err
}

func check(s *Service, ctx context.Context, in struct {
	Rules     string `json:"rules"`
	Variables string `json:"variables"`
}) (out struct {
	Rules []Checked `json:"rules"`
}, err error) {
	out.Rules, err = s.engine.Check(ctx, in.Rules, in.Variables)
	return out, err
}

func find(s *Service, ctx context.Context, body []byte, piece part) ([]byte, error) {
	return question(func(s *Service, ctx context.Context, in Search) (*SearchEnd, error) {
		var failed error
		end, err := s.engine.Find(ctx, in, func(d Discovery) {
			text, err := json.Marshal(d)
			if err != nil {
				failed = err
				return
			}
			piece(text)
		})
		return end, errors.Join(err, failed)
	})(s, ctx, body, piece)
}

func passes(s *Service, _ context.Context, in struct {
	Query *string `json:"query"`
}) (out struct {
	Passes []Choice `json:"passes"`
	Query  string   `json:"query"`
}, err error) {
	out.Query = s.subject.Recording.Live.Query
	if in.Query != nil {
		out.Query = *in.Query
	}
	out.Passes, err = s.engine.Choices(out.Query)
	return out, err
}

func try(s *Service, ctx context.Context, in struct {
	view.Input
	Seed uint64 `json:"seed"`
}) (*Trial, error) {
	at, _, err := s.placed(in.Input)
	if err != nil {
		return nil, err
	}
	return s.engine.Try(ctx, at, in.Seed)
}

func export(s *Service, ctx context.Context, body []byte, _ part) ([]byte, error) {
	var in struct {
		view.Input
		Format string `json:"format"`
	}
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	at, _, err := s.placed(in.Input)
	if err != nil {
		return nil, err
	}
	data, err := s.engine.Export(ctx, at, in.Format)
	if err != nil {
		return nil, s.hide(err)
	}
	return data, nil
}
