// Package tune measures which choices of a database of passes pay for one computation on this machine,
// and writes them as a query.
//
// A [Subject] is what a dialect gives: how the computation is optimized and made ready to run, and how
// its outputs are compared. [Options.Tune] tries what the database knows: entries that the query selects,
// without each of them; entries and tags that it leaves out, with each of them; and other values of
// settings. Each [Choice] is decided by runs in turns with the best so far. It is kept only if it saves
// more than [Worth], beyond noise, and again with both sides made anew. At last the whole is compared
// with what the query was at the beginning, and dropped if it does not pay.
//
// What changes bits, or breaks the promise that a tag stands for, is tried only if the tag is allowed.
// Package tune knows no op and no dialect. A [Subject] belongs to one goroutine.
package tune
