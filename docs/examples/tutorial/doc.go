// Package tutorial holds the code of docs/tutorial.md: its tests are the listings, and what they print is what the text shows.
package tutorial
