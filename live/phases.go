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

// phases measures the duration of the phases of a step. Each phase has one metric and one span.
type phases struct {
	clock   clock.PassiveClock
	tracer  trace.Tracer
	metrics *metrics.Metrics

	// since is when the previous phase ended. parent is the context with the span of the step.
	since  time.Time
	parent context.Context //nolint:containedctx // Decide takes none, and its span still has a parent

	// ended contains the completed phases, in order.
	ended []phase
}

// A phase is one part of a step and its duration.
type phase struct {
	name string
	took time.Duration
}

// Phases that are not part of every step. phaseWait is the wait for launches of the previous step.
// phaseTend is not part of a step: it is the work of a backend between steps.
const (
	phaseTend = "tend"
	phaseWait = "wait"
)

// begin starts a phase. It returns a context with the span of the phase, and a function that ends
// the phase.
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

// end ends a phase that started when the previous one ended.
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

// log returns the durations of the completed phases for the log.
func (p *phases) log() slog.Attr {
	all := make([]any, 0, len(p.ended))
	for _, x := range p.ended {
		all = append(all, slog.Duration(x.name, x.took))
	}
	return slog.Group("phases", all...)
}
