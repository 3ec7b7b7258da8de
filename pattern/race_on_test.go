//go:build race

package pattern_test

// raceDetector tells that sync.Pool drops at random, as it does for the race
// detector.
const raceDetector = true
