package view

import (
	"encoding/json"
	"time"

	"github.com/nnopt/nnopt/profile"
)

// Format and Version mark the JSON of a Recording.
const (
	Format  = "nnopt-view"
	Version = 1
)

// The kinds of recordings.
const (
	KindExpression = "expression"
	KindNetwork    = "network"
	KindProfile    = "profile" // of times alone: there is no graph
)

// A Recording is what an optimizer did, as data for the page. Values, nodes, passes and steps are
// numbered from 0, in the order of their lists; the numbers hold for the whole run. A node is an
// apply, and has a number even after it has left the graph.
type Recording struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Kind    string `json:"kind"`
	Title   string `json:"title"`
	Subject string `json:"subject,omitempty"` // the expression, or the name of the model
	Query   string `json:"query,omitempty"`

	Values []valueEntry   `json:"values,omitempty"`
	Nodes  []nodeEntry    `json:"nodes,omitempty"`
	Start  graphState     `json:"start"`
	Passes []passEntry    `json:"passes"`
	Steps  []Step         `json:"steps,omitempty"`
	Misses []Miss         `json:"misses,omitempty"`
	Docs   map[string]Doc `json:"docs,omitempty"` // of passes and rules, by name

	Commands *Commands `json:"commands,omitempty"` // of a network

	Compile   time.Duration    `json:"compile_ns,omitempty"`
	Link      time.Duration    `json:"link_ns,omitempty"`
	Calls     int              `json:"calls,omitempty"`
	CallTime  time.Duration    `json:"call_ns,omitempty"`
	Phases    []profile.Phase  `json:"phases,omitempty"`
	Execution []profile.OpCost `json:"execution,omitempty"`
	Report    string           `json:"report,omitempty"` // the profile as text

	Live *Input `json:"live,omitempty"` // set by a Server: what the page begins with

	roots []int // the passes of the runs over each segment
}

// A valueEntry is the output of a node, an input, or a constant.
type valueEntry struct {
	Name     string `json:"name,omitempty"`
	Type     string `json:"type"`
	Constant string `json:"const,omitempty"` // the data of a constant, shortened
	Input    bool   `json:"input,omitempty"`
	Node     *int32 `json:"node,omitempty"` // the node that computes it
	Bytes    int64  `json:"bytes,omitempty"`

	Weights *histogram `json:"weights,omitempty"` // of a constant with many numbers
}

// A nodeEntry is an apply.
type nodeEntry struct {
	Op      string      `json:"op"`   // as it prints
	Kind    string      `json:"kind"` // the Go type of the op
	Params  [][2]string `json:"params,omitempty"`
	Lines   []string    `json:"lines,omitempty"` // what the op says about itself at length
	In      []int32     `json:"in,omitempty"`    // after the step that brought it in
	Out     []int32     `json:"out"`
	Ops     int64       `json:"ops,omitempty"`     // floating-point operations of products of matrices, where they are known
	Segment int32       `json:"segment,omitempty"` // of a network with several
	Origin  *int32      `json:"origin,omitempty"`  // the command before, or the column of the expression
	From    string      `json:"from,omitempty"`    // Origin as text
	Weights *histogram  `json:"weights,omitempty"` // the parameters of the op
}

// A graphState is the graph before the first step.
type graphState struct {
	Nodes   []int32 `json:"nodes,omitempty"` // inputs before clients
	Inputs  []int32 `json:"inputs,omitempty"`
	Outputs []int32 `json:"outputs,omitempty"` // values; those of all segments
}

// A passEntry is one run of a rewriter. Parents come before children.
type passEntry struct {
	Name        string        `json:"name"`
	Class       string        `json:"class"`
	Parent      int           `json:"parent"` // -1 for the root
	Start       time.Duration `json:"start_ns"`
	Time        time.Duration `json:"time_ns"`
	Validate    time.Duration `json:"validate_ns,omitempty"`
	NodesBefore int           `json:"nodes_before"`
	NodesAfter  int           `json:"nodes_after"`
	Changed     int           `json:"changed,omitempty"`
	Steps       [2]int        `json:"steps"` // the first, and the one after the last
	Rules       []ruleCost    `json:"rules,omitempty"`
	Laps        []lap         `json:"laps,omitempty"` // of an equilibrium
	Counters    [][2]string   `json:"counters,omitempty"`

	Saturation *profile.Saturation `json:"saturation,omitempty"`
}

// A ruleCost is what a rule did in a pass.
type ruleCost struct {
	Name    string        `json:"name"`
	Hits    int           `json:"hits"`
	Tries   int           `json:"tries"`
	Refused int           `json:"refused,omitempty"`
	Created int           `json:"created,omitempty"`
	Time    time.Duration `json:"time_ns"`
	Global  bool          `json:"global,omitempty"`
}

// A lap is one round of an equilibrium.
type lap struct {
	Nodes   int           `json:"nodes"`
	Applied int           `json:"applied"`
	Time    time.Duration `json:"time_ns"`
}

// A Step is a change of the graph. To make it, add the new nodes, then set inputs and outputs,
// then remove the nodes that are gone. A node that comes back reads what it read last.
type Step struct {
	Pass     int           `json:"pass"` // the innermost one
	Rule     string        `json:"rule,omitempty"`
	At       *int32        `json:"at,omitempty"` // the first node that was replaced
	Time     time.Duration `json:"ns"`           // on the clock of Pass.Start
	New      []int32       `json:"new,omitempty"`
	Gone     []int32       `json:"gone,omitempty"`
	Rewired  [][3]int32    `json:"rewired,omitempty"`     // node, number of the input, value
	Outputs  [][2]int32    `json:"outputs,omitempty"`     // number of the output, value
	All      []int32       `json:"outputs_all,omitempty"` // all outputs, if their number changed
	Replaced [][2]int32    `json:"replaced,omitempty"`    // the value, and its replacement
}

// An Input is an expression or a file, and how to optimize it.
type Input struct {
	Expr      string   `json:"expr,omitempty"`
	Variables string   `json:"variables,omitempty"` // their types, as --vars of "nnopt expr" takes them
	Grad      string   `json:"grad,omitempty"`      // variables; their gradients take the place of the expression
	File      string   `json:"file,omitempty"`      // the name of a file, which takes the place of an expression
	Flags     []string `json:"flags,omitempty"`     // what "nnopt view" takes for such a file: "--shape=x=1x3"
	Query     string   `json:"query,omitempty"`
	Rules     string   `json:"rules,omitempty"` // more rules, one a line, or a file of rules
}

// A Miss says why a rule does not fire at a node at the end of a pass. Its JSON is a list
// [node, rule, text, pass].
type Miss struct {
	Node int32
	Rule string // a path, see optdb.Listing
	Text string
	Pass int
}

// MarshalJSON writes the list.
func (m Miss) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{m.Node, m.Rule, m.Text, m.Pass})
}

// UnmarshalJSON reads the list.
func (m *Miss) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&m.Node, &m.Rule, &m.Text, &m.Pass})
}

// A Doc says what a pass or a rule is.
type Doc struct {
	Path   string   `json:"path"`
	Doc    string   `json:"doc,omitempty"`
	Tags   []string `json:"tags,omitempty"`
	Cases  []string `json:"cases,omitempty"`  // of a rule that is text
	Reason string   `json:"reason,omitempty"` // why a rule is a Go function
}

// Commands are the commands of a network as compiled, and as optimized.
type Commands struct {
	Before []Command `json:"before"`
	After  []Command `json:"after"`
}

// A Command is one of a computation. Those before are tied to nodes of the graph at the start,
// those after to nodes of the final graph.
type Command struct {
	Text   string  `json:"text"`
	Bytes  int64   `json:"bytes"` // in use after it
	Nodes  []int32 `json:"nodes,omitempty"`
	Values []int32 `json:"values,omitempty"` // that it accepts or provides
}
