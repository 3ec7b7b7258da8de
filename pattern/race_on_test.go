//go:build race

package pattern_test

// raceDetector is set under the race detector, with which sync.Pool drops items at random.
const raceDetector = true
