package live

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/live/drain"
)

// drainSpans are the spans of the drains that are under way. A drain continues long after the
// step that decided it, so that its span is a trace of its own with a link to the step. One
// that a notice ordered has a link once a step plans it; one that this process took over from
// another has none.
type drainSpans struct {
	tracer trace.Tracer
	clock  clock.PassiveClock

	mu   sync.Mutex
	open map[string]*drainSpan // by node
}

type drainSpan struct {
	trace.Span
	linked bool
}

// begin returns the span of the drain of a node. It starts now unless it is open. The caller holds
// mu.
func (d *drainSpans) begin(node, pool string) *drainSpan {
	s := d.open[node]
	if s == nil {
		at := trace.WithTimestamp(d.clock.Now())
		_, span := d.tracer.Start(context.Background(), "drain", at, trace.WithNewRoot(), trace.WithAttributes(
			attribute.String("k8s.node.name", node), attribute.String("spotter.pool", pool)))
		s = &drainSpan{Span: span}
		d.open[node] = s
	}
	return s
}

// ordered notes that a step, whose span is given, orders a drain, and reports whether the span of
// the drain starts with that.
func (d *drainSpans) ordered(node, pool, decision string, step trace.SpanContext) (begun bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	begun = d.open[node] == nil
	if s := d.begin(node, pool); !s.linked {
		s.linked = true
		s.AddLink(trace.Link{SpanContext: step})
		s.SetAttributes(attribute.String("spotter.decision", decision))
	}
	return begun
}

// ended ends the span of a drain. One that was never begun has none.
func (d *drainSpans) ended(r *drain.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.open[r.Node]
	if s == nil {
		return
	}
	delete(d.open, r.Node)
	s.SetAttributes(attribute.String("spotter.drain.outcome", string(r.Outcome)),
		attribute.String("spotter.drain.reason", r.Reason),
		attribute.Bool("spotter.drain.urgent", r.Urgent))
	if r.Outcome == drain.OutcomeUndone {
		s.SetStatus(codes.Error, r.Message)
	}
	s.End(trace.WithTimestamp(d.clock.Now()))
}

// left ends the spans of drains that the process leaves to the next.
func (d *drainSpans) left() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for node, s := range d.open { // in no order: spans have none
		s.SetAttributes(attribute.String("spotter.drain.outcome", "left"))
		s.End(trace.WithTimestamp(d.clock.Now()))
		delete(d.open, node)
	}
}

// DrainEntered takes note of a drain that comes into a phase. It may be called from any
// goroutine.
func (c *Controller) DrainEntered(node, pool string, phase drain.Phase) {
	d := c.spans
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begin(node, pool).AddEvent(string(phase), trace.WithTimestamp(d.clock.Now()))
}

// PodEvicted takes note of the answer to one eviction of a drain. It may be called from any
// goroutine.
func (c *Controller) PodEvicted(node string, pod types.NamespacedName, answer drain.Answer) {
	d := c.spans
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.open[node]; s != nil {
		s.AddEvent("eviction", trace.WithTimestamp(d.clock.Now()), trace.WithAttributes(
			attribute.String("k8s.namespace.name", pod.Namespace), attribute.String("k8s.pod.name", pod.Name),
			attribute.String("spotter.eviction.answer", answer.String())))
	}
}
