//go:build !race

package pattern_test

const raceDetector = false
