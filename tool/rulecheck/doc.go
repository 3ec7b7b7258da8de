// Package rulecheck is the machine that checks rewrite rules. It makes expressions that a rule
// matches, lets the rule fire, computes both sides on ordinary and on special values, and says what
// differs: Alive2's method, for tensors.
//
//	rule := pattern.Rule{Name: "root", Cases: ...} // (sqrt (sqr x)) => x
//	report, err := rulecheck.Check(ctx, tensorpass.Vocabulary(), rule, rulecheck.Options{})
//	report.Class          // wrong
//	report.Counterexample // x: float64 = -1.0; left: sqrt(sqr(x)) = 1.0; right: x = -1.0
//
// Every rewrite of a rule is checked by itself, on the applies that those before it leave, and so
// is the other direction of an equation, on all. The names of its pattern are replaced by inputs
// and constants of every element type and of rank 0 to 3, with and without dimensions that
// broadcast, of the sizes 0 to 4 and of a larger one; the rests by up to three of them; captured
// parameters by those of the ops in [Options.Ops]; a number by a constant that is not larger than
// what it is combined with. An op of the vocabulary has to be a tensor.Op.
//
// # Classes
//
// Where the left side fails, anything may replace it, as in Alive2: most rules that drop an operand
// drop the error of a size that does not fit. A right side that fails alone is wrong. Otherwise the
// values are compared, and each difference has the first class that explains it:
//
//   - [Exact]: there is none, to the bit. All NaN are one value.
//   - [Rounding]: it is within the error of one of the sides. Both are computed again and again
//     with every result off by the last bits; a result below the smallest normal number is off by
//     as much as the smallest number, and one above the largest number may be any number above. So
//     sums and products may be taken in another order, even where terms cancel or where they come
//     near the limits of the type. An exponent beyond 2⁵³ that is rounded may be even or odd, an
//     angle so large that its rounding error is one radian may be any, and where a sum cancels, its
//     error is left. Zeros of either sign are equal as results. Where the difference shows, as in
//     1/x, it counts.
//   - [Overflow]: an integer wraps around; or a float becomes infinite, of arguments far from the
//     limits (exp(1000)), or only on the right (sqr(1e200)) although the rule never avoids it; also
//     where that makes NaN of it, as sin(2x).
//   - [UnsafeNaN]: an argument or something that the left side computes is NaN or infinite, or an
//     argument or intermediate result is zero. Neither numbers of the pattern nor false count.
//   - [Type]: the right side computes in a type that is less exact. This is also the class of rules
//     that match, but whose replacement can't be given the type of what it replaces.
//   - [Wrong]: anything else.
//   - [NeverFires]: a rewrite of the rule did not fire.
//
// Some differences at the limits are called Rounding, as rules that are held to be right have them:
// where an argument is the smallest integer, which has no opposite; where integers wrap around that
// are combined with floats or, beyond 2⁶¹, become floats; where floats overflow of arguments within
// a factor of 10⁵ of the limits, or on the left in a smaller type than the result's; between
// results below the smallest normal number; in the sign of an infinity that is a quotient by an
// integer zero; and where operands of several types are combined in the smaller one.
//
// A rule promises Exact or Rounding. The tag unsafe_nan permits UnsafeNaN, and Overflow of floats;
// the tag overflow permits Overflow. Other tags permit nothing.
//
// A check is deterministic. The counterexample is the smallest that was found; expr's parser reads
// its declarations, values and expressions.
//
// [CheckRewriter] checks rules that are Go functions on given expressions. [CheckDatabase] also
// finds rules of one group that undo each other. The package runs no optimizer and changes no rule.
package rulecheck
