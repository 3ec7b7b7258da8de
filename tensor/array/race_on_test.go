//go:build race

package array_test

// raceDetector reports whether the race detector is on. Pools then drop values at random.
const raceDetector = true
