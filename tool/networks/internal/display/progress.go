package display

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/nnopt/nnopt/tool"
)

// A Progress shows the state of a long run in one line of a terminal. A nil Progress
// shows nothing.
type Progress struct {
	w        io.Writer
	Position func() (done, size int64) // of the input; size is -1 if unknown
	start    time.Time

	mu         sync.Mutex
	utterances int
	frames     int64
	stop, gone chan struct{}
}

// How often the line is rewritten, and when it first appears.
const (
	progressInterval = 200 * time.Millisecond
	progressDelay    = time.Second
)

// NewProgress returns a Progress if standard error is a terminal.
func NewProgress(c *tool.Console, position func() (done, size int64)) *Progress {
	if !tool.IsTerminal(c.Stderr) {
		return nil
	}
	p := &Progress{w: c.Stderr, Position: position, start: time.Now(), stop: make(chan struct{}), gone: make(chan struct{})}
	go p.show()
	return p
}

func (p *Progress) show() {
	defer close(p.gone)
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			p.Clear()
			return
		case now := <-tick.C:
			// A run of less than a second shows no line that would flicker.
			if took := now.Sub(p.start); took >= progressDelay {
				p.mu.Lock()
				fmt.Fprintf(p.w, "\r%s\x1b[K", p.Line(took))
				p.mu.Unlock()
			}
		}
	}
}

// Add counts an utterance.
func (p *Progress) Add(frames int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.utterances++
	p.frames += int64(frames)
	p.mu.Unlock()
}

// Clear removes the line until it is next written.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	fmt.Fprint(p.w, "\r\x1b[K")
	p.mu.Unlock()
}

// End removes the line for good.
func (p *Progress) End() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.gone
}

// Line returns the text after a time.
func (p *Progress) Line(took time.Duration) string {
	const width = 24
	text := fmt.Sprintf("%s utterances, %s frames, %s frames/s", Thousands(p.utterances), Thousands(p.frames),
		Thousands(int64(float64(p.frames)/took.Seconds())))
	done, size := p.Position()
	if size <= 0 || done <= 0 {
		return text
	}
	share := min(float64(done)/float64(size), 1)
	full := int(math.Round(share * width))
	bar := strings.Repeat("█", full) + strings.Repeat("░", width-full)
	left := time.Duration((1 - share) / share * float64(took)).Round(time.Second)
	return fmt.Sprintf("%s %3.0f %%  %s, %v left", bar, 100*share, text, left)
}
