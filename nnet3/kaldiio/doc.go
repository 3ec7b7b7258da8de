// Package kaldiio reads and writes Kaldi's encodings: tokens, numbers, vectors, matrices (also compressed and sparse
// ones), archives and scripts, in their binary and their text form.
//
// A Reader takes one pass over its source. It copies nothing but what it hands out: the numbers of a large matrix go
// from the source into the matrix. It never trusts a size that stands in a header: memory grows with the data that
// really arrived. Whatever is wrong with the input comes back as an *Error that says in which file, at which byte (in
// text also: on which line) and after which token, and that errors.Is knows as ErrCorrupt or ErrTruncated.
//
// A Writer writes the bytes that Kaldi would write. Its error is sticky, so callers check once, at the end.
//
// Readers and Writers are not safe for concurrent use.
package kaldiio
