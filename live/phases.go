package live

import (
	"context"
	"log/slog"
	"slices"
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

	// ended are the phases that are over, in order.
	ended []phase
}

// A phase is one part of a step and how long it took.
type phase struct {
	name string
	took time.Duration
}

// The phases that not every step has. phaseWait is how long a step waits for launches of
// the one before. phaseTend is no part of a step: it is what a backend does between them.
const (
	phaseTend = "tend"
	phaseWait = "wait"
)

// begin opens a phase that is given a context, and returns what closes it.
func (p *phases) begin(ctx context.Context, name string) (context.Context, func()) {
	p.parent = ctx
	from := p.clock.Now()
	inner, span := p.tracer.Start(ctx, name, trace.WithTimestamp(from))
	return inner, func() {
		p.since = p.clock.Now()
		p.over(name, p.since.Sub(from))
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
	p.over(name, now.Sub(p.since))
	span.End(trace.WithTimestamp(now))
	p.since = now
}

func (p *phases) over(name string, took time.Duration) {
	p.metrics.Phase(name, took)
	if i := slices.IndexFunc(p.ended, func(x phase) bool { return x.name == name }); i >= 0 {
		p.ended[i].took += took
		return
	}
	p.ended = append(p.ended, phase{name, took})
}

// log returns the phases that are over, for the log.
func (p *phases) log() slog.Attr {
	all := make([]any, 0, len(p.ended))
	for _, x := range p.ended {
		all = append(all, slog.Duration(x.name, x.took))
	}
	return slog.Group("phases", all...)
}
