//go:build race

package component

// raceDetector says that the race detector is on. With it, pools drop items at random.
const raceDetector = true
