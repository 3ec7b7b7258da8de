// Package fileio reads and writes files in a world where inputs never end, disks fill up, nobody
// opens the other end of a FIFO, and file names contain terminal escapes.
//
//   - Limit, ReadAll and ReadFile read at most a given number of bytes.
//   - Open, Create, Reader and Writer wait only until a context is done.
//   - Map and OpenWithin are for large files, and for those that untrusted input names.
//   - Write and Replace replace a file completely or not at all.
//   - Plain and NewPlainWriter make text safe for a terminal.
//   - Excerpt and Excerpts keep errors short that quote untrusted input.
//
// The package knows nothing about file formats. Its functions are safe for concurrent use; the
// readers, writers and files they return are not.
package fileio
