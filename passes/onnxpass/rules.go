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
type Local struct {
	Rule         rewrite.NodeRewriter
	Groups, Tags []string
}

// code are the rules that are Go functions, by name.
func code() map[string]rewrite.Rule {
	list := []rewrite.Rule{
		constantFolding, shapeFolding, ifConstant, decompose,
		constantReshape, constantExpand, fuseReshapes, fuseSqueezes, fuseUnsqueezes, shapeOfSame, dropExpand, dropFill, moveExpand, fuseReduceUnsqueeze,
		fuseConcats, dropEmptyOfConcat, cancelConcatOfSplit, fuseConcatOfSlices, partOfConcat, fuseSlices, fusePads, squeezeForGather,
		ifEqualBranches, dropUnreadOutputs, moveTransposes, transposeResult, dropTransposeBeforeReduce,
		moveFactor, replaceEinsum, mergeBounds, depthToSpace, sumOfSeveral, moveOutOfLoop,
		gatherBeforeTranspose, gatherBeforeReshape, reshapeBeforeGather, splitForSequence,
	}
	byName := make(map[string]rewrite.Rule)
	for _, r := range list {
		byName[r.Name] = r
	}
	return byName
}

// Rules returns the rules, in the order of their files. Text is compiled when a rule is first used.
// The rules are part of the program, so a fault of theirs panics; tests compile all.
func Rules() []Local {
	entries, err := files.ReadDir("rules")
	if err != nil {
		panic(err)
	}
	byName := code()
	var list []Local
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
func family(name, text string, byName map[string]rewrite.Rule) []Local {
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
	list := make([]Local, len(heads))
	for i, r := range heads {
		list[i] = Local{Groups: slices.Clone(r.Groups), Tags: r.Tags}
		if g, ok := byName[r.Name]; ok && r.Go != "" {
			g.Doc, g.Reason = r.Doc, r.Go
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
