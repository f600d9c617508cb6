package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// lineEvery is the interval between lines if there is no terminal. Work that ends earlier writes
// none.
const lineEvery = 10 * time.Second

// A lines writes progress as lines.
type lines struct {
	stop, stopped chan struct{}

	// mu guards state.
	mu    sync.Mutex
	state progressView
}

// writeLines writes the progress of step to w at every interval until it is closed.
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

// line returns the progress at now.
func (l *lines) line(now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.now = now
	return l.state.line()
}

// update processes a message. A step starts when its first message arrives.
func (l *lines) update(msg any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.now = time.Now()
	l.state.Update(msg)
}

// close stops the lines. Nothing is written after it returns.
func (l *lines) close() {
	close(l.stop)
	<-l.stopped
}
