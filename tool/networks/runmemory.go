package networks

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// garbagePercent is the growth of the heap that starts a garbage collection once utterances are
// being written. The live heap is mostly the model, which takes no time to scan, and a chunk
// allocates next to nothing: with 10 instead of 15 percent, 1,000 utterances of tdnnf_1k take the
// same time within the noise (27.4 and 27.5 s of processor time), and 1 to 2 MB less (22 November
// 2026).
const garbagePercent = 10

// buildingPercent is the same while the first programs are made, which leaves mostly garbage. With
// 15 percent the first row of tdnnf_1k came after 69 ms of processor time, with 50 after 48,
// without any collection after 40 (22 November 2026).
const buildingPercent = 50

// A runMemory keeps the memory of run small, without collecting garbage again and again before the
// first row. The environment variable GOGC switches off all of it but the return of memory.
type runMemory struct {
	before  int // the percentage to return to
	collect bool
	once    sync.Once
	group   sync.WaitGroup
}

// load is called before the model is read. The heap grows from nothing then, and not much of it is
// garbage: Go's own percentage is right.
func (m *runMemory) load() {
	if m.collect = os.Getenv("GOGC") == ""; m.collect {
		m.before = debug.SetGCPercent(100)
	}
}

// build is called after the model is read. What it took in the form in which it is read is used
// again for programs.
func (m *runMemory) build() {
	runtime.GC()
	if m.collect {
		debug.SetGCPercent(buildingPercent)
	}
}

// settle is called when there are rows to write. It returns, in the background, the memory that
// only the beginning needed.
func (m *runMemory) settle() {
	m.once.Do(func() {
		if m.collect {
			debug.SetGCPercent(garbagePercent)
		}
		m.group.Go(func() {
			debug.FreeOSMemory()
			dropPages()
		})
	})
}

// end restores what was set.
func (m *runMemory) end() {
	m.group.Wait()
	if m.collect {
		debug.SetGCPercent(m.before)
	}
}
