package networks

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/nnopt/nnopt/tool"
)

// A progress shows the state of a long run in one line of a terminal. A nil progress
// shows nothing.
type progress struct {
	w        io.Writer
	position func() (done, size int64) // of the input; size is -1 if unknown
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

// newProgress returns a progress if standard error is a terminal.
func newProgress(c *tool.Console, position func() (done, size int64)) *progress {
	if !tool.IsTerminal(c.Stderr) {
		return nil
	}
	p := &progress{w: c.Stderr, position: position, start: time.Now(), stop: make(chan struct{}), gone: make(chan struct{})}
	go p.show()
	return p
}

func (p *progress) show() {
	defer close(p.gone)
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			p.clear()
			return
		case now := <-tick.C:
			// A run of less than a second shows no line that would flicker.
			if took := now.Sub(p.start); took >= progressDelay {
				p.mu.Lock()
				fmt.Fprintf(p.w, "\r%s\x1b[K", p.line(took))
				p.mu.Unlock()
			}
		}
	}
}

// add counts an utterance.
func (p *progress) add(frames int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.utterances++
	p.frames += int64(frames)
	p.mu.Unlock()
}

// clear removes the line until it is next written.
func (p *progress) clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	fmt.Fprint(p.w, "\r\x1b[K")
	p.mu.Unlock()
}

// end removes the line for good.
func (p *progress) end() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.gone
}

// line returns the text after a time.
func (p *progress) line(took time.Duration) string {
	const width = 24
	text := fmt.Sprintf("%s utterances, %s frames, %s frames/s", thousands(p.utterances), thousands(p.frames),
		thousands(int64(float64(p.frames)/took.Seconds())))
	done, size := p.position()
	if size <= 0 || done <= 0 {
		return text
	}
	share := min(float64(done)/float64(size), 1)
	full := int(math.Round(share * width))
	bar := strings.Repeat("█", full) + strings.Repeat("░", width-full)
	left := time.Duration((1 - share) / share * float64(took)).Round(time.Second)
	return fmt.Sprintf("%s %3.0f %%  %s, %v left", bar, 100*share, text, left)
}
