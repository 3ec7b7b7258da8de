//go:build race

package kernel

func init() { raceDetector = true }
