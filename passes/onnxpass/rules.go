package onnxpass

import (
	"embed"
	"fmt"
	"slices"
	"sync"

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

// Rules returns the rules, in the order of their files. Text is compiled when a rule is first used.
// The rules are part of the program, so a fault of theirs panics; tests compile all.
func Rules() []localRule {
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
}

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
