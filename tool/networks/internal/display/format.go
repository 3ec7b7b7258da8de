// Package display aligns the commands of two computations, shows how far a run is, and formats numbers.
package display

import (
	"fmt"
	"strconv"
	"time"
)

// Thousands formats a number with commas between groups of three digits.
func Thousands[T int | int64](n T) string {
	digits := strconv.FormatInt(int64(n), 10)
	var out []byte
	for i := range len(digits) {
		if left := len(digits) - i; i > 0 && left%3 == 0 && digits[i-1] != '-' {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return string(out)
}

// Bytes formats a number of bytes in a suitable unit.
func Bytes(n int64) string {
	switch {
	case n >= 10e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e6:
		return fmt.Sprintf("%.2f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}

// Duration formats a duration with two or three digits.
func Duration(d time.Duration) string {
	switch s := d.Seconds(); {
	case s >= 1:
		return fmt.Sprintf("%.2f s", s)
	case s >= 0.1:
		return fmt.Sprintf("%.0f ms", s*1e3)
	case s >= 1e-3:
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
	return fmt.Sprintf("%.0f µs", d.Seconds()*1e6)
}
