package progress

import (
	"sync"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
)

// A called passes progress to a function.
type called struct {
	report func(cli.Step)

	// mu guards state, and prevents concurrent calls of report.
	mu    sync.Mutex
	state progressView
}

// call returns a called that has reported the start of step.
func call(report func(cli.Step), step string) *called {
	now := time.Now()
	c := &called{report: report, state: progressView{step: step, begun: now, now: now}}
	c.update(nil)
	return c
}

// update processes a message and reports the progress.
func (c *called) update(msg any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.now = time.Now()
	c.state.Update(msg)
	c.report(cli.Step{Name: c.state.step, Line: c.state.line(), Done: c.state.done, Total: c.state.total})
}
