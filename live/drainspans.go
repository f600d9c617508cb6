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

// drainSpans contains the spans of the current drains. A drain continues long after the step that
// decided it, so its span is the root of its own trace, with a link to the step. The span of a
// drain that a notice ordered gets the link once a step plans the drain. The span of a drain that
// was started by another process has no link.
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

// begin returns the span of the drain of a node, and starts it if necessary. The caller must hold
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

// ordered records that a step orders a drain. step is the span of the step. begun reports whether
// this started the span of the drain.
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

// ended ends the span of a drain, if it was started.
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

// left ends the spans of drains that are left to the next process.
func (d *drainSpans) left() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for node, s := range d.open { // the order of spans does not matter
		s.SetAttributes(attribute.String("spotter.drain.outcome", "left"))
		s.End(trace.WithTimestamp(d.clock.Now()))
		delete(d.open, node)
	}
}

// DrainEntered records that a drain has entered a phase. It is safe for concurrent use.
func (c *Controller) DrainEntered(node, pool string, phase drain.Phase) {
	d := c.spans
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begin(node, pool).AddEvent(string(phase), trace.WithTimestamp(d.clock.Now()))
}

// PodEvicted records the answer to one eviction of a drain. It is safe for concurrent use.
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
