package queue

import (
	"context"
	"strconv"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// source is the source of the notices of this package.
const source = "sqs"

// soon is the time before a scheduled change, in milliseconds, from which on it is reported as a
// notice with a deadline. An earlier report is treated as a recommendation, because there is enough
// time to move the pods.
const soon = 30 * 60 * 1000

// handle passes a message to the sink and then marks it for deletion. An unreadable message is
// received again, since another replica of a newer version may understand it, and is deleted after
// ReceivesMax receives.
func (q *Queue) handle(ctx context.Context, x *types.Message) {
	m, err := read(sdk.ToString(x.Body))
	if err != nil {
		q.count(func(c *Counts) { c.Malformed++ })
		if q.logged.first("malformed: " + err.Error()) {
			q.config.Log.Warn("a message of the queue cannot be read", "queue", q.config.URL, "message",
				sdk.ToString(x.MessageId), "error", err)
		}
		if receives(x) >= q.config.ReceivesMax {
			q.finish(x)
		}
		return
	}
	q.state.change(func(s *state) { s.sent = max(s.sent, m.at) }) // messages of kinds that are not used have no time
	if _, seen := q.seen.Get(m.id); m.id != "" && seen {
		q.count(func(c *Counts) { c.Repeated++ })
		q.finish(x)
		return
	}
	if notices := q.publish(ctx, m); len(notices) > 0 && notices[0].ReclaimAt != 0 {
		q.warned = append(q.warned, warning{q.config.Clock.Now().Add(q.config.ClaimWait), sdk.ToString(x.ReceiptHandle),
			notices})
	} else {
		q.finish(x)
	}
	if m.id != "" {
		q.seen.Add(m.id, nil)
	}
}

// finish marks a message for deletion.
func (q *Queue) finish(x *types.Message) {
	q.done = append(q.done, sdk.ToString(x.ReceiptHandle))
}

// receives returns how often a message was received, including this time.
func receives(x *types.Message) int {
	n, err := strconv.Atoi(x.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
	if err != nil {
		return 1
	}
	return n
}

// publish reports the event in a message to the sink, and returns the notices.
func (q *Queue) publish(ctx context.Context, m *message) []backend.Notice {
	now := policy.TimeOf(q.config.Clock.Now())
	switch m.kind {
	case kindInterruption:
		q.count(func(c *Counts) { c.Interruptions++ })
		if now.Sub(m.at) > q.config.InterruptionLate {
			q.late()
			return nil
		}
		return q.notice(ctx, m, m.reclaimAt)
	case kindRecommendation:
		q.count(func(c *Counts) { c.Recommendations++ })
		if now.Sub(m.at) > q.config.RecommendationLate {
			q.late()
			return nil
		}
		return q.notice(ctx, m, 0)
	case kindScheduledChange:
		q.count(func(c *Counts) { c.ScheduledChanges++ })
		switch {
		case m.reclaimAt <= now:
			q.late()
		case m.reclaimAt-now <= soon:
			return q.notice(ctx, m, m.reclaimAt)
		default:
			return q.notice(ctx, m, 0)
		}
	case kindStateChange:
		q.count(func(c *Counts) { c.StateChanges++ })
		if m.state != "pending" && m.state != "running" {
			q.sink.Wake(backend.WakeState)
		}
	case kindLifecycle:
		q.count(func(c *Counts) { c.Lifecycle++ })
	case kindUnknown, kindOther:
		q.count(func(c *Counts) { c.Unknown++ })
		if q.logged.first(m.name) {
			q.config.Log.Warn("the queue holds messages that Spotter does not use; they are deleted", "queue", q.config.URL,
				"kind", m.name)
		}
	}
	return nil
}

// notice reports a notice for each instance in a message.
func (q *Queue) notice(ctx context.Context, m *message, reclaimAt policy.Time) []backend.Notice {
	all := make([]backend.Notice, len(m.instances))
	for i, id := range m.instances {
		n := backend.Notice{Machine: id, At: m.at, ReclaimAt: reclaimAt, Source: source}
		n.ActedBy = q.expected(ctx, n)
		q.sink.Notice(n)
		all[i] = n
	}
	return all
}

// late counts an event that has passed: the next step observes its effects.
func (q *Queue) late() {
	q.count(func(c *Counts) { c.Late++ })
	q.sink.Wake(backend.WakeLateNotice)
}

// recentMax is the number of events that are remembered, enough for a busy hour.
const recentMax = 10_000
