// Package rulecheck is the machine that checks rewrite rules. It makes expressions that a rule
// matches, lets the rule fire, computes both sides on ordinary and on special values, and says what
// differs: Alive2's method, for graphs of any dialect.
//
//	rule := pattern.Rule{Name: "root", Cases: ...} // (sqrt (sqr x)) => x
//	report, err := rulecheck.Check(ctx, tensors.Domain(nil, nil, nil), rule, rulecheck.Options{})
//	report.Class          // wrong
//	report.Counterexample // x: float64 = -1.0; left: sqrt(sqr(x)) = 1.0; right: x = -1.0
//
// Every rewrite of a rule is checked by itself, on the applies that those before it leave, and so
// is the other direction of an equation, on all. A [Domain] replaces the names of its pattern by
// inputs and constants, the rests by up to three of them, and captured parameters by those of ops
// that it knows. [World] is the domain of a dialect that says how values are drawn, computed and
// compared. Package tensors has one that also knows how arithmetic rounds.
//
// Where the left side fails, anything may replace it, as in Alive2: most rules that drop an operand
// drop the error of an operand that does not fit. A right side that fails alone is wrong. Otherwise
// the domain says which [Class] a difference is of, and what the tags of a rule permit.
//
// A check is deterministic. The counterexample is the smallest that was found.
//
// [CheckRewriter] checks rules that are Go functions on given expressions. [CheckDatabase] also
// finds rules of one group that undo each other. The package runs no optimizer and changes no rule.
package rulecheck
