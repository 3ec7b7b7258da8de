package networks

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/internal/fileio"
)

// A runReport is the output of run --json.
type runReport struct {
	Model      string `json:"model"`
	Query      string `json:"query"`
	Utterances int    `json:"utterances"`
	Failed     int    `json:"failed"`
	// Skipped utterances were done before (--skip-done).
	Skipped int `json:"skipped,omitempty"`
	// Lost utterances were scored but not written. Dropped ones were read but not
	// scored before the run ended.
	Lost    int `json:"lost"`
	Dropped int `json:"dropped"`
	// NotFinite utterances have features or i-vectors that are NaN or infinite.
	NotFinite int `json:"not_finite"`
	// LackingStats are batch normalizations without statistics, for which mean 0 and variance 1 are used.
	LackingStats []string `json:"lacking_stats,omitempty"`
	// UnreadLines and UnreadBytes are the lines of a script or the bytes of an archive
	// that a run that ended early has not read; -1 if unknown.
	UnreadLines int   `json:"unread_lines,omitempty"`
	UnreadBytes int64 `json:"unread_bytes,omitempty"`
	Frames      int64 `json:"frames"`
	Rows        int64 `json:"rows"`
	Threads     int   `json:"threads"`
	// LoadSeconds is the time until the model was prepared, FirstResultSeconds that
	// until the first utterance was written.
	LoadSeconds        float64 `json:"load_seconds"`
	FirstResultSeconds float64 `json:"first_result_seconds"`
	// RunSeconds is the time from the first utterance to the last. ComputeSeconds and
	// BuildSeconds are the times of computing and of building programs, summed over
	// the workers.
	RunSeconds     float64 `json:"run_seconds"`
	ComputeSeconds float64 `json:"compute_seconds"`
	BuildSeconds   float64 `json:"build_seconds"`
	Programs       int     `json:"programs"`
	CacheHits      int     `json:"cache_hits"`
	// WorkspaceBytes is the working memory of all workers.
	WorkspaceBytes int64 `json:"workspace_bytes"`
}

// add adds a summary. before is the time from the start to the first utterance.
func (r *runReport) add(s decodable.Summary, before time.Duration) {
	r.Failed, r.Frames, r.Rows, r.Dropped, r.NotFinite = s.Failed, s.Frames, s.Rows, s.Dropped, s.NotFinite
	r.Threads = runtime.GOMAXPROCS(0)
	if s.Utterances > 0 {
		r.FirstResultSeconds = (before + s.FirstResult).Seconds()
	}
	r.RunSeconds, r.ComputeSeconds, r.BuildSeconds = s.Elapsed.Seconds(), s.Busy.Seconds(), s.Programs.Build.Seconds()
	r.Programs, r.CacheHits = s.Programs.Misses, s.Programs.Hits
	r.WorkspaceBytes = s.Workspaces
}

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
			fileio.ForgetProgram()
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
