package mcp

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/spotter-dev/spotter/internal/cli"
)

// progressEvery is the minimum interval between two notifications about the same step.
const progressEvery = 200 * time.Millisecond

// A reporter notifies the client of progress, if it requested that. The progress of a call is that
// of all its steps: it must increase with every notification (basic/utilities/progress of the
// specification), and each step counts from 0.
type reporter struct {
	notify func(*sdk.ProgressNotificationParams) // nil if not requested

	step string
	base int // progress at the start of the step
	last int // last progress, -1 before the first
	sent time.Time
}

// newReporter returns the reporter for a call.
func newReporter(ctx context.Context, r *sdk.CallToolRequest) *reporter {
	token := r.Params.GetProgressToken()
	if token == nil {
		return &reporter{}
	}
	return &reporter{last: -1, notify: func(n *sdk.ProgressNotificationParams) {
		n.ProgressToken = token
		_ = r.Session.NotifyProgress(ctx, n) // a client that is gone ends ctx
	}}
}

// report notifies the client of the progress of a step.
func (r *reporter) report(s cli.Step) {
	if r.notify == nil {
		return
	}
	begins := s.Name != r.step
	if begins {
		r.step, r.base = s.Name, r.last+1
	}
	now, at := time.Now(), r.base+s.Done
	if at <= r.last || !begins && s.Done < s.Total && now.Sub(r.sent) < progressEvery {
		return
	}
	r.last, r.sent = at, now
	n := &sdk.ProgressNotificationParams{Message: s.Line, Progress: float64(at)}
	if s.Total > 0 {
		n.Total = float64(r.base + s.Total)
	}
	r.notify(n)
}
