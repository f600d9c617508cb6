package live

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/live/metrics"
)

// phases take the time of the parts of a step: one metric and one span each.
type phases struct {
	clock   clock.PassiveClock
	tracer  trace.Tracer
	metrics *metrics.Metrics

	// since is when the phase before ended, and parent the span of the step.
	since  time.Time
	parent context.Context //nolint:containedctx // Decide takes none, and its span still has a parent
}

// begin opens a phase that is given a context, and returns what closes it.
func (p *phases) begin(ctx context.Context, name string) (context.Context, func()) {
	p.parent = ctx
	from := p.clock.Now()
	inner, span := p.tracer.Start(ctx, name, trace.WithTimestamp(from))
	return inner, func() {
		p.since = p.clock.Now()
		p.metrics.Phase(name, p.since.Sub(from))
		span.End(trace.WithTimestamp(p.since))
	}
}

// end closes a phase that began when the one before ended.
func (p *phases) end(name string) {
	if p.parent == nil {
		return // the step ended before its first phase
	}
	now := p.clock.Now()
	_, span := p.tracer.Start(p.parent, name, trace.WithTimestamp(p.since))
	p.metrics.Phase(name, now.Sub(p.since))
	span.End(trace.WithTimestamp(now))
	p.since = now
}
