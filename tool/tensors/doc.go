// Package tensors is the dialect of tensors for package tool. It says how expressions are read, and how
// their graphs are run, compared and made smaller; it brings the verb expr.
//
// # Classes of rules
//
// The machine that checks rules asks why the sides of a rule differ. Each difference has the first
// class that explains it:
//
//   - [rulecheck.Exact]: both sides have the same bits. All NaN are one value.
//   - [rulecheck.Rounding]: it is within the error of one of the sides. Both are computed again and again
//     with every result off by the last bits; a result below the smallest normal number is off by
//     as much as the smallest number, and one above the largest number may be any number above. So
//     sums and products may be taken in another order, even where terms cancel or where they come
//     near the limits of the type. An exponent beyond 2⁵³ that is rounded may be even or odd, an
//     angle so large that its rounding error is one radian may be any, and where a sum cancels, its
//     error is left. Zeros of either sign are equal as results. Where the difference shows, as in
//     1/x, it counts.
//   - [rulecheck.Overflow]: an integer wraps around; or a float becomes infinite, of arguments far from the
//     limits (exp(1000)), or only on the right (sqr(1e200)) although the rule never avoids it; also
//     where that makes NaN of it, as sin(2x).
//   - [rulecheck.UnsafeNaN]: an argument or something that the left side computes is NaN or infinite, or an
//     argument or intermediate result is zero. Neither numbers of the pattern nor false count.
//   - [rulecheck.Type]: the right side computes in a type that is less exact. This is also the class of rules
//     that match, but whose replacement can't be given the type of what it replaces.
//   - [rulecheck.Wrong]: anything else.
//   - [rulecheck.NeverFires]: a rewrite of the rule did not fire.
//
// Some differences at the limits are called Rounding, as rules that are held to be right have them:
// where an argument is the smallest int64, which has no opposite; where int64s wrap around that are
// combined with floats or, beyond 2⁶¹, become floats; where floats overflow of arguments within
// a factor of 10⁵ of the limits, or on the left in a smaller type than the result's; between
// results below the smallest normal number; in the sign of an infinity that is a quotient by an
// integer zero; and where operands of several types are combined in the smaller one.
//
// A rule promises Exact or Rounding. The tag unsafe_nan permits UnsafeNaN, and Overflow of floats;
// the tag overflow permits Overflow. Other tags permit nothing.
//
// The parser of expressions reads the declarations, values and expressions of a counterexample.
package tensors
