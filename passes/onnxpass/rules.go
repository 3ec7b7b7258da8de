package onnxpass

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

//go:embed rules/*.rules
var files embed.FS

// A Local is a rule with the databases that it is in, and its tags besides those of the databases.
type localRule struct {
	Rule         rewrite.NodeRewriter
	Groups, Tags []string
}

// code are the rules that are Go functions, by the names that they have in the files of rules.
func code() map[string]rewrite.Rule {
	return map[string]rewrite.Rule{
		"constant_folding":                  {Fn: fold, Depth: 1},
		"shape_folding":                     {Fn: shapeFolding, Depth: 1},
		"if_with_const_cond":                {Fn: ifConstant, Depth: 1},
		"if_with_equal_branches":            {Fn: ifEqualBranches, Depth: 1},
		"decompose":                         {Fn: decompose, Depth: 1},
		"constant_reshape":                  {Fn: constantReshape, Depth: 1},
		"constant_expand":                   {Fn: constantExpand, Depth: 1},
		"fuse_consecutive_reshapes":         {Fn: fuseReshapes},
		"fuse_consecutive_squeezes":         {Fn: fuseAxes("Squeeze"), Depth: 2},
		"fuse_consecutive_unsqueezes":       {Fn: fuseAxes("Unsqueeze"), Depth: 2},
		"shape_of_same_sizes":               {Fn: shapeOfSame},
		"drop_expand_before_broadcast":      {Fn: dropExpand, Depth: 2},
		"drop_fill_before_broadcast":        {Fn: dropFill, Depth: 2},
		"move_expand_to_result":             {Fn: moveExpand, Depth: 2},
		"fuse_consecutive_reduce_unsqueeze": {Fn: fuseReduceUnsqueeze, Depth: 2},
		"fuse_consecutive_concats":          {Fn: fuseConcats},
		"drop_empty_of_concat":              {Fn: dropEmptyOfConcat, Depth: 1},
		"cancel_concat_of_split":            {Fn: cancelConcatOfSplit, Depth: 2},
		"fuse_concat_of_slices":             {Fn: fuseConcatOfSlices, Depth: 2},
		"part_of_concat":                    {Fn: partOfConcat, Depth: 2},
		"fuse_consecutive_slices":           {Fn: fuseSlices, Depth: 2},
		"fuse_consecutive_pads":             {Fn: fusePads, Depth: 2},
		"squeeze_for_gather":                {Fn: squeezeForGather, Depth: 1},
		"gather_before_transpose":           {Fn: gatherBeforeTranspose, Depth: 2},
		"gather_before_reshape":             {Fn: gatherBeforeReshape, Depth: 3},
		"reshape_before_gather":             {Fn: reshapeBeforeGather, Depth: 3},
		"split_for_sequence":                {Fn: splitForSequence, Depth: 2},
		"drop_unread_outputs":               {Fn: dropUnreadOutputs, Depth: 1},
		"move_invariant_out_of_loop":        {Fn: moveOutOfLoop, Depth: 1},
		"move_factor_into_weights":          {Fn: moveFactorIntoWeights},
		"move_transpose_to_others":          {Fn: moveTransposes},
		"transpose_result_of_transposed":    {Fn: transposeResult, Depth: 2},
		"drop_transpose_before_reduce":      {Fn: dropTransposeBeforeReduce, Depth: 2},
		"merge_bounds":                      {Fn: mergeBounds, Depth: 2},
		"depth_to_space_from_parts":         {Fn: depthToSpaceFromParts, Depth: 3},
		"replace_einsum_with_matmul":        {Fn: replaceEinsumWithMatMul, Depth: 1},
		"sum_of_several":                    {Fn: sumOfSeveral},
	}
}

// Rules returns the rules, in the order of their files. Text is compiled when a rule is first used, for all databases.
// The rules are part of the program, so a fault of theirs panics; tests compile all.
func Rules() []localRule { return slices.Clone(allRules()) }

var allRules = sync.OnceValue(func() []localRule {
	entries, err := files.ReadDir("rules")
	if err != nil {
		panic(err)
	}
	byName := code()
	var list []localRule
	for _, e := range entries {
		name := "rules/" + e.Name()
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		list = append(list, family(name, string(text), byName)...)
	}
	if len(byName) > 0 {
		panic(fmt.Sprintf("onnxpass: Go functions that no file of rules has: %v", byName))
	}
	return list
})

// family returns the rules of a file. It takes the Go functions that it uses out of byName.
func family(name, text string, byName map[string]rewrite.Rule) []localRule {
	const folder = "passes/onnxpass/"
	heads, err := pattern.ParseHeads(folder+name, text)
	if err != nil {
		panic(err)
	}
	parse := sync.OnceValue(func() []pattern.Rule {
		rules, err := pattern.ParseRules(folder+name, text)
		if err != nil {
			panic(err)
		}
		return rules
	})
	list := make([]localRule, len(heads))
	for i, r := range heads {
		list[i] = localRule{Groups: slices.Clone(r.Groups), Tags: r.Tags}
		if g, ok := byName[r.Name]; ok && r.Go != "" {
			g.Name, g.Doc, g.Reason, g.On = r.Name, r.Doc, r.Go, onOps
			list[i].Rule = g
			delete(byName, r.Name)
			continue
		}
		list[i].Rule = rewrite.Later(rewrite.Description{Name: r.Name, Doc: r.Doc, Reason: r.Go}, func() rewrite.NodeRewriter {
			s, err := pattern.New(standardVocabulary(), parse()[i], pattern.Shared())
			if err != nil {
				panic(fmt.Errorf("%s:%d: %w", name, r.Line, err))
			}
			return s
		})
	}
	return list
}

var standardVocabulary = sync.OnceValue(func() pattern.Vocabulary { return Vocabulary(ir.Standard()) })

//go:embed testdata/*.txt
var caseFiles embed.FS

// A Case is a graph on which a rule fires, or must not, as the tests of the rules have them. Programs
// hold them as well: rules that are Go functions have no pattern, so the machine that checks rules can
// fire them on these graphs only.
type Case struct {
	Rule  string
	Graph string // see ParseGraph
	Want  string // the graph that the rule makes in one walk, "!" where it must not fire
	File  string
	Line  int
}

// Cases returns the cases of all rules.
func Cases() []Case {
	names, err := fs.Glob(caseFiles, "testdata/*.txt")
	if err != nil {
		panic(err) // a fault of the program
	}
	var list []Case
	for _, name := range names {
		text, err := caseFiles.ReadFile(name)
		if err != nil {
			panic(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			c := Case{File: name, Line: i + 1}
			c.Rule, line, _ = strings.Cut(line, " | ")
			c.Graph, c.Want, _ = strings.Cut(line, " | ")
			list = append(list, c)
		}
	}
	return list
}

// ParseGraph reads a graph in short: statements with semicolons between them, whose types are inferred.
//
//	x: float[n,3]; s = int64[2] [6,4]; y, z = Split{axis=0}/2(x); y, z
//
// The first statement is an input, the second a constant, the third an apply, where _ is an input that is
// left out, and the last one has the outputs. The ops are those of operators.
func ParseGraph(text string, operators *ir.Operators) (*fgraph.FunctionGraph, error) {
	p := parsing{operators, map[string]*fgraph.Variable{"_": ir.Missing()}, nil}
	statements := strings.Split(text, ";")
	for _, s := range statements[:len(statements)-1] {
		if err := p.statement(strings.TrimSpace(s)); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	outputs, err := p.values(statements[len(statements)-1])
	if err != nil {
		return nil, err
	}
	return fgraph.New(p.inputs, outputs)
}

type parsing struct {
	operators *ir.Operators
	known     map[string]*fgraph.Variable
	inputs    []*fgraph.Variable
}

func (p *parsing) values(list string) ([]*fgraph.Variable, error) {
	var vars []*fgraph.Variable
	for _, name := range strings.Split(list, ",") {
		v := p.known[strings.TrimSpace(name)]
		if v == nil {
			return nil, fmt.Errorf("nothing computes %q", name)
		}
		vars = append(vars, v)
	}
	return vars, nil
}

func (p *parsing) statement(s string) error {
	if name, typ, ok := strings.Cut(s, ": "); ok && !strings.Contains(name, "=") {
		t, err := ir.ParseType(typ)
		if err != nil {
			return err
		}
		v := fgraph.NewInput(t, name)
		p.known[name], p.inputs = v, append(p.inputs, v)
		return nil
	}
	names, value, ok := strings.Cut(s, " = ")
	if !ok {
		return fmt.Errorf("no statement")
	}
	if typ, data, ok := strings.Cut(value, " "); ok && strings.HasSuffix(typ, "]") {
		t, err := ir.ParseType(typ)
		if err != nil {
			return err
		}
		x, err := ir.Text{}.ParseData(t, data)
		if err != nil {
			return err
		}
		p.known[names] = ir.Constant(x.(*ir.Value), "")
		return nil
	}
	open := strings.LastIndex(value, "(")
	if open < 0 || !strings.HasSuffix(value, ")") {
		return fmt.Errorf("no op with its inputs in parentheses")
	}
	parsed, err := ir.Text{Operators: p.operators}.ParseOp(value[:open])
	if err != nil {
		return err
	}
	op := parsed.(*ir.Op)
	inputs, err := p.values(value[open+1 : len(value)-1])
	if err != nil {
		return err
	}
	a, err := p.operators.Apply(op, inputs...)
	if err != nil {
		return err
	}
	for i, name := range strings.Split(names, ",") {
		if i >= len(a.Outputs()) {
			return fmt.Errorf("%s has %d outputs", op.Name(), len(a.Outputs()))
		}
		p.known[strings.TrimSpace(name)] = a.Outputs()[i]
	}
	return nil
}
