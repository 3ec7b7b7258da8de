//go:build !race

package pipeline_test

// raceDetector reports whether the race detector is on. Pools then drop values at random.
const raceDetector = false
