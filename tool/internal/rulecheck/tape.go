package rulecheck

import (
	"math/rand/v2"
)

// A Tape is a list of choices. A choice that is not on it is made at random, or is the first one.
// The first choice is the simplest.
type Tape struct {
	choices []int
	at      int
	rng     *rand.Rand
}

// Draw returns one of n choices.
func (t *Tape) Draw(n int) int {
	if t.at == len(t.choices) {
		k := 0
		if t.rng != nil {
			k = t.rng.IntN(n)
		}
		t.choices = append(t.choices, k)
	}
	// A changed choice may lead to another part of the builder, where fewer choices are offered
	// than when the rest of the tape was made. The remainder keeps every tape valid, so a mutation
	// never has to know what a choice is about.
	k := t.choices[t.at] % n
	t.at++
	return k
}

// Maybe is true with probability 1/n.
func (t *Tape) Maybe(n int) bool { return t.Draw(n) == n-1 }
