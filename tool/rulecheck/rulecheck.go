// Package rulecheck has what a dialect says of its values so that the machine can check, prove and find its rewrite rules:
//
//	var domain = rulecheck.World{Rules: …, Types: …, Random: …, Evaluate: …, Compare: …}.Domain()
//
// goes into the field Domain of a tool.Dialect, for the verbs of "rule". The machine itself is tool/internal/rulecheck.
package rulecheck

import "github.com/nnopt/nnopt/tool/internal/rulecheck"

// A World says how the values of a dialect are drawn, computed and compared.
type World = rulecheck.World

// A Domain is what the machine knows of a dialect. World has a method that returns one.
type Domain = rulecheck.Domain

// A Case is an expression on which a rule may fire, for World.Parse.
type Case = rulecheck.Case

// A Class says how the sides of a rule differ, for World.Compare. A dialect may have more of them.
type Class = rulecheck.Class

// The classes that values may differ by, the most harmless first.
const (
	Exact     = rulecheck.Exact
	Rounding  = rulecheck.Rounding
	Overflow  = rulecheck.Overflow
	UnsafeNaN = rulecheck.UnsafeNaN
	Wrong     = rulecheck.Wrong
)
