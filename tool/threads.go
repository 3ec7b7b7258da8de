package tool

import (
	"flag"
	"runtime"
)

// Threads is the flag --threads.
type Threads struct{ n int }

// DeclareThreads declares --threads.
func DeclareThreads(fs *flag.FlagSet) *Threads {
	t := new(Threads)
	fs.IntVar(&t.n, "threads", 0, "Number of threads that compute together, which changes no result; 0 uses all processors")
	return t
}

// Of returns the number of threads of each of some computations at a time.
func (t *Threads) Of(computations int) int {
	if t.n > 0 {
		return t.n
	}
	return max(runtime.GOMAXPROCS(0)/max(computations, 1), 1)
}
