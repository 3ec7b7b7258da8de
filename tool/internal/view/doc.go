// Package view records what an optimizer does to a graph, and makes a page of it.
//
// A [Recorder] watches a run: which pass and which rule made which change, and which values were
// replaced by which. It costs nothing where it is not installed. Its [Recording] is plain data,
// which docs/formats.md describes. [WritePage] turns a recording into one HTML file that needs
// nothing else. The verb view also serves that page, with the optimizer behind it.
//
// Graphs of any dialect can be recorded. What a type or an op tells of itself is shown: see [Sized],
// [Parametric], [Counter] and Describe, a method of ops that returns lines of text. A graph that is
// made of code, and is turned into code again, such as the commands of a network, is shown beside
// it: see [Emitter] and [Code].
//
// The page itself, HTML, CSS and JavaScript, is in the folder page.
package view
