// Package fileio reads and writes in a world that fails: inputs that never end, disks that fill up, FIFOs that nobody opens at their other end,
// names that would steer a terminal.
//
//   - Limit, ReadAll and ReadFile read no more than a stated number of bytes.
//   - Open, Create, Reader and Writer wait no longer than a context lasts.
//   - Write replaces a file by a whole one or leaves it as it was.
//   - Plain and PlainWriter make text fit for a terminal.
//
// All functions are safe for concurrent use. What they return is not.
package fileio
