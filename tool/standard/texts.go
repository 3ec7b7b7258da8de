package standard

import "github.com/nnopt/nnopt/tool"

// texts are what help says of verbs of package tool, which know no dialect, about networks and
// expressions.
var texts = []tool.Verb{
	{
		Name: "profile",
		Args: "MODEL|EXPR",
		Detail: `
Optimizes the argument, as "$0 graph" takes it, and prints what the optimizer recorded: as text in Theano's layout, as JSON, as the page
of "$0 view" without graphs, for "go tool pprof", or as a trace for Perfetto or chrome://tracing. --run also executes what was optimized
and adds the times of its ops. Counters show how a pass changed the number of commands of a network, the peak of memory, or the number
of operations.`,
		Examples: `
$0 profile --run=10 net.config
$0 profile --format=json --output=before.json net.config
$0 profile --diff=before.json --query='+fast_run -fusion' net.config`,
	},
	{
		Name:     "graph",
		Args:     "MODEL|EXPR",
		Synopsis: "print the graph of a network or an expression, at any step of the optimizer",
		Detail: `
The argument is a network, if there is such a file, as for "$0 compile", and otherwise an expression, as for "$0 expr". The graph is
printed as a graph file, which "$0 opt" reads: a line is an input, a constant or the application of an op, with all parameters. The
graph of a network is followed by its inputs and outputs and, once it is decided, the storage of its values. A looped computation has
several graphs. See docs/formats.md.

--after prints the graph as it is after a pass, and --every after each pass that changed something.`,
		Examples: `
$0 graph --after=canonicalize net.config
$0 graph --query=none --vars='x y: vector' 'exp(x*y/y)'`,
	},
	{
		Name: "tune",
		Args: "MODEL|EXPR",
		Detail: `
Tries what the database of passes knows, for a network, an ONNX model or an expression on random inputs: each pass that --query selects
and that makes a rewrite is left out, each pass and tag that it leaves out is added, and settings get other values. A choice runs in
turns with the best so far until it is decided beyond noise whether it saves a hundredth of the time. What pays, and pays again with
both sides made anew, is kept. At last the tuned query is compared with the one to begin with, and dropped if it does not pay. The
result is a query with the figures in comments, which --query @FILE reads.

Outputs keep their bits: a choice that changes them is not kept. Passes with a tag that promises less (int16, int8, limits, overflow,
reassoc, unsafe_nan) are tried only if --allow names the tag; then outputs may differ by --error, relative to their norm. They are
those for the inputs that were measured: give a model some of its own by --input. What --query excludes is not tried, nor what is
always left out for ONNX models (unsafe_nan, overflow) unless --query names it. See docs/tune.md.`,
		Examples: `
$0 tune --seconds=1 --output=my.query net.config
$0 tune --seconds=1 --allow=reassoc --shape x=2x3 model.onnx
$0 tune --seconds=1 --vars='x y: vector' 'tanh(x*y) + exp(x)'`,
	},
	{
		Name: "opt",
		Detail: `
FILE is a graph file, as "$0 graph" prints it, "-" standard input. The result is also a graph file. A file with a field "network" is a
graph of that network, a file beside it; any other is a graph of tensors. The passes are those of --query or, without it, of the
field "query".`,
		Examples: `
$0 opt --query=+canonicalize my.graph
$0 opt --every my.graph`,
	},
	{
		Name: "rule",
		Detail: `
Makes expressions that a rule matches, with every element type, ranks from 0 to 3 and sizes from 0 on, lets the rule fire, and computes
both sides, also of NaN, infinities, zeros of both signs and the limits of each type. A line a rule says what it found:

  exact, rounding   both sides are equal, to the bit or up to rounding
  overflow          they differ where an integer wraps around or a float becomes infinite
  unsafe_nan        they differ where something is NaN or infinite, perhaps because something is zero
  type              the replacement computes in a less exact type, or can't be given the type of what it replaces
  wrong             they differ elsewhere
  never_fires       a rewrite of the rule never fired

A rule promises exact or rounding; the tags unsafe_nan and overflow permit those. The exit status is 0 if every rule is what its tags
promise, 1 if not, and 2 if a rule does not parse. A counterexample has variables with types and values, as expr takes them in --vars
and --eval, and both sides.

--file reads a file of rules, or of lines PATTERN => PATTERN. --all checks the rules of the database, for
tensors also those that are Go functions, on the expressions of their tests, and finds rules of one group that undo each other. --vars
gives types to the names of patterns for tensors, such as "x: float32 matrix; n: int64 scalar"; "$0 help expr" explains them.
` + tool.FindDetail,
		Examples: `
$0 rule check '(neg (neg x)) => x'
$0 rule check --file=my.rules
$0 rule find --ops=maximum,neg --time=30s`,
	},
	{
		Name: "view",
		Args: "MODEL|EXPR|PROFILE",
		Detail: `
Optimizes a request to MODEL, or an expression, and makes a page of what the optimizer did: the graph after every step, what changed and
by which rule, the passes as a timeline, why rules did not fire, and for a network its commands before and after with the memory in
use. A PROFILE, a file of "$0 profile --format=json", gives the timeline alone. An argument is an expression unless a file of that name
exists. A page itself can be served again.

--output writes the page to one file, which needs no network. --listen serves it, until a signal ends it; then the page also optimizes
expressions that are typed there, with the passes that are ticked, checks rules, and says why rules do not fire at any step. The address
is HOST:PORT; the default serves this machine alone, on any free port. With neither, the page goes to standard output.`,
		Examples: `
$0 view --output=page.html net.config
$0 view --listen --vars='x: vector' 'exp(log(x))'`,
	},
}
