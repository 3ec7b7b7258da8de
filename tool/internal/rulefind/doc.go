// Package rulefind finds rewrite rules that nobody wrote, for graphs of any dialect, as Ruler does
// (Nandi et al., OOPSLA 2021): terms over chosen ops are enumerated, told apart by their values, and
// those that seem equal are candidates.
//
//	found, err := rulefind.Search(ctx, domain, rulefind.Options{Ops: []string{"add", "neg"}})
//	fmt.Print(found.Text("canonicalize", "saturate")) // a file of rules
//
// Terms are built from small to large, over one term of each class of equal values (file term.go). What
// known rules derive is no candidate any more: saturation decides that (package saturate), and so it
// does which of the others follow from a few. Small and general ones come first. Package rulecheck
// checks each before it becomes a rule: it says which tags and guards a rule needs, or refutes it. Then
// the values for which it is wrong are added to those that tell terms apart, and the search is repeated.
//
// Of a set of few rules, and where a share is counted, a candidate follows by cases as well: where it follows for each side
// that its variables can be on of the numbers in terms. Then saturation knows bounds of them, and rules ask for those: the
// search finds conditions on terms that hold for what a term happens to be applied to.
//
// [Measure] turns the search round: it says which of the identities a database derives. [Redundant]
// says which rules follow from others.
//
// A search that is not ended by time depends on its options only. One that is cancelled returns what it
// has found. The package knows no op and no dialect; a [rulecheck.Domain] does.
package rulefind
