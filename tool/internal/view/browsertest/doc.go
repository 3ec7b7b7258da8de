// Package browsertest tests the page of nnopt view in a real browser. It is a module of its own, so
// that no other package depends on what drives the browser. Where there is no Chromium or Chrome,
// its tests are left out, with a line that says so.
package browsertest
