// Package kaldiio reads and writes Kaldi's encodings in binary and in text: tokens, numbers,
// vectors, matrices (compressed ones too), archives and scripts. It knows nothing of networks.
//
// A [Reader] passes over its source once and copies only what it returns: the numbers of a large
// matrix go straight from the source into the matrix. It does not trust the sizes in headers, so
// memory grows with the data that actually arrives. An [Error] gives the file, the byte, the line
// (in text) and the last token; errors.Is recognizes [ErrCorrupt] and [ErrTruncated].
//
// A [Writer] writes the bytes that Kaldi would write. Its error sticks, so callers check it once.
//
// A [TableReader], a [TableLookup] and a [TableWriter] work on whole tables of objects with keys,
// named as in Kaldi ("ark:feats.ark"). An [Opener] opens the files and pipes behind such names.
//
// Readers, writers and tables are not safe for concurrent use. An Opener is.
package kaldiio
