//go:build !race

package decodable_test

// raceDetector says that the race detector is on, under which pools forget what they hold.
const raceDetector = false
