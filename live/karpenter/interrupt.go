package karpenter

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// The reasons of the Events in which Karpenter for AWS says what the provider warned
// it of. A node that is to be reclaimed it drains itself; of a rebalance
// recommendation it makes an Event and nothing else.
const (
	eventInterrupted    = "SpotInterrupted"
	eventRecommendation = "SpotRebalanceRecommendation"
)

// watchEvents reports what Karpenter was warned of, until ctx ends. Only Events of
// NodeClaims are kept in memory.
func (w *watcher) watchEvents(ctx context.Context) error {
	c, err := cache.New(w.mgr.GetConfig(), cache.Options{
		HTTPClient: w.mgr.GetHTTPClient(), Scheme: w.mgr.GetScheme(), Mapper: w.mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Event{}: {Namespaces: map[string]cache.Config{metav1.NamespaceDefault: {}}, Field: fields.OneTermEqualSelector("involvedObject.kind", nodeClaimKind.Kind)},
		},
	})
	if err != nil {
		return fmt.Errorf("watching Events: %w", err)
	}
	informer, err := c.GetInformer(ctx, &corev1.Event{}, cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(handler(func(_, e *corev1.Event) { w.b.seeEvent(e) }, func(*corev1.Event) {}))
	}
	if err != nil {
		return fmt.Errorf("watching Events: %w", err)
	}
	return c.Start(ctx)
}

// seeEvent reports a warning, once.
func (b *Backend) seeEvent(e *corev1.Event) {
	if e.Reason != eventInterrupted && e.Reason != eventRecommendation || !byKarpenter(e) {
		return
	}
	at := policy.TimeOf(eventTime(e))
	key := string(e.InvolvedObject.UID) + "/" + e.Reason
	b.mu.Lock()
	known := b.interrupts[key]
	b.interrupts[key] = true
	b.mu.Unlock()
	if known || at < b.cfg.Since {
		return
	}
	n := backend.Notice{Machine: e.InvolvedObject.Name, At: at, Source: BackendName}
	if e.Reason == eventInterrupted {
		n.ReclaimAt, n.ActedBy = at.Add(policy.NoticeLead(policy.AWS)), policy.ActorKarpenter
	}
	var m backend.Machine
	c := &karpv1.NodeClaim{}
	if err := b.client.Get(context.Background(), client.ObjectKey{Name: e.InvolvedObject.Name}, c); err == nil { // from the cache
		m = b.machine(c)
		n.Machine = cmp.Or(m.ProviderID, m.Name)
	}
	b.sink.Notice(n)
	if e.Reason == eventInterrupted && m.Market != "" {
		b.sink.Meet(backend.Event{Kind: backend.MetReclaim, Pool: m.Pool, Market: m.Market, At: at})
	}
}

// byKarpenter reports whether an Event is where those on NodeClaims are, which have no
// namespace, and by Karpenter. An Event in a namespace is written by whoever works there.
func byKarpenter(e *corev1.Event) bool {
	return e.Namespace == metav1.NamespaceDefault && e.InvolvedObject.Namespace == "" && cmp.Or(e.ReportingController, e.Source.Component) == "karpenter"
}

func eventTime(e *corev1.Event) time.Time {
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}
