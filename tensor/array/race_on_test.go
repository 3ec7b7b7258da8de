//go:build race

package array

// raceDetector reports whether the race detector is on. Pools then drop values at random.
const raceDetector = true
