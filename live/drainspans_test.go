package live

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
)

func attributeOf(all []attribute.KeyValue, key string) string {
	for _, x := range all {
		if string(x.Key) == key {
			return x.Value.String()
		}
	}
	return ""
}

// TestDrainSpans: a drain is a span of its own, with a link to the step that decided it, its
// phases and evictions as events, and its end.
func TestDrainSpans(t *testing.T) {
	w := newFixture(t, 30, interceptor.Funcs{})
	recorder := tracetest.NewSpanRecorder()
	w.parts.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		p, m := drains(s, m)
		p.Drains = p.Drains[:1]
		return p, m
	}
	c := w.controller(t)
	step(t, c)
	c.DrainEntered("n000", "web", drain.PhaseEvicting)
	w.clock.Step(time.Minute)
	c.PodEvicted("n000", types.NamespacedName{Namespace: "shop", Name: "cart"}, drain.AnswerBlocked)
	c.PodEvicted("n017", types.NamespacedName{Namespace: "shop", Name: "other"}, drain.AnswerEvicted)
	w.clock.Step(time.Minute)
	c.DrainEnded(drain.Result{Node: "n000", Pool: "web", Outcome: drain.OutcomeUndone, Reason: "Deadline", Message: "too late"})

	spans := recorder.Ended()
	at := slices.IndexFunc(spans, func(s sdktrace.ReadOnlySpan) bool { return s.Name() == "drain" })
	decided := slices.IndexFunc(spans, func(s sdktrace.ReadOnlySpan) bool { return s.Name() == "step" })
	if at < 0 || decided < 0 {
		t.Fatalf("%d spans, drain %d, step %d", len(spans), at, decided)
	}
	s := spans[at]
	if len(s.Links()) != 1 || s.Links()[0].SpanContext.TraceID() != spans[decided].SpanContext().TraceID() ||
		s.SpanContext().TraceID() == spans[decided].SpanContext().TraceID() {
		t.Errorf("links %+v", s.Links())
	}
	if s.EndTime().Sub(s.StartTime()) != 2*time.Minute || s.Status().Code != codes.Error ||
		attributeOf(s.Attributes(), "k8s.node.name") != "n000" ||
		attributeOf(s.Attributes(), "spotter.drain.reason") != "Deadline" || attributeOf(s.Attributes(), "spotter.decision") == "" {
		t.Errorf("from %v to %v, status %v, attributes %v", s.StartTime(), s.EndTime(), s.Status(), s.Attributes())
	}
	if e := s.Events(); len(e) != 2 || e[0].Name != "evicting" || e[1].Name != "eviction" ||
		attributeOf(e[1].Attributes, "k8s.pod.name") != "cart" ||
		attributeOf(e[1].Attributes, "spotter.eviction.answer") != "blocked" || e[1].Time.Sub(e[0].Time) != time.Minute {
		t.Errorf("events %+v", e)
	}
}

// TestDrainSpansEnd: no span stays open: not of a drain that is not begun, and not of one that
// the process leaves.
func TestDrainSpansEnd(t *testing.T) {
	w := newFixture(t, 30, interceptor.Funcs{})
	recorder := tracetest.NewSpanRecorder()
	w.parts.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		p, m := drains(s, m)
		p.Drains = p.Drains[:1]
		return p, m
	}
	w.answer["drain n000"] = errors.New("not now")
	c := w.controller(t)
	step(t, c)
	c.DrainEntered("n005", "web", drain.PhasePreparing)
	c.DrainEntered("n005", "web", drain.PhaseEvicting)
	c.spans.left()
	c.DrainEnded(drain.Result{Node: "n009", Pool: "web", Outcome: drain.OutcomeHeld})
	var ended []string
	for _, s := range recorder.Ended() {
		if s.Name() == "drain" {
			ended = append(ended, attributeOf(s.Attributes(), "k8s.node.name")+" "+attributeOf(s.Attributes(), "spotter.drain.outcome"))
		}
	}
	if !slices.Equal(ended, []string{"n000 held", "n005 left"}) || len(c.spans.open) != 0 {
		t.Errorf("ended %q, open %d", ended, len(c.spans.open))
	}
}
