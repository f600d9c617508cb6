package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// lineEvery is how often a line is written where there is no terminal. What ends before then writes none.
const lineEvery = 10 * time.Second

// lines writes how far something is, a line at a time.
type lines struct {
	stop, stopped chan struct{}

	// mu guards state.
	mu    sync.Mutex
	state progressView
}

// writeLines writes to w the state of step at every interval until it is closed.
func writeLines(w io.Writer, step string, every time.Duration) *lines {
	now := time.Now()
	l := &lines{stop: make(chan struct{}), stopped: make(chan struct{}),
		state: progressView{step: step, begun: now, now: now}}
	go func() {
		defer close(l.stopped)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-l.stop:
				return
			case now := <-tick.C:
				fmt.Fprintln(w, l.line(now))
			}
		}
	}()
	return l
}

// line returns the state at now.
func (l *lines) line(now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.now = now
	return l.state.line()
}

// update notes what was sent. A step starts when its first message arrives.
func (l *lines) update(msg any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.now = time.Now()
	l.state.Update(msg)
}

// close returns when nothing more will be written.
func (l *lines) close() {
	close(l.stop)
	<-l.stopped
}
