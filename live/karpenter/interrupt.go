package karpenter

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// watchEvents tells of what Karpenter was warned of, until ctx ends. Only Events of
// NodeClaims are kept in memory.
func (w *watcher) watchEvents(ctx context.Context) error {
	c, err := cache.New(w.mgr.GetConfig(), cache.Options{
		HTTPClient: w.mgr.GetHTTPClient(), Scheme: w.mgr.GetScheme(), Mapper: w.mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Event{}: {Field: fields.OneTermEqualSelector("involvedObject.kind", nodeClaimKind.Kind)},
		},
	})
	if err != nil {
		return fmt.Errorf("watching Events: %w", err)
	}
	go func() {
		informer, err := c.GetInformer(ctx, &corev1.Event{})
		if err == nil {
			_, err = informer.AddEventHandler(handler(w.b.seeEvent, func(*corev1.Event) {}))
		}
		if err != nil && ctx.Err() == nil {
			w.b.log.Warn("Events of Karpenter are not seen", "error", err)
		}
	}()
	return c.Start(ctx)
}

// seeEvent tells of a warning, once.
func (b *Backend) seeEvent(e *corev1.Event) {
	if e.Reason != eventInterrupted && e.Reason != eventRecommendation {
		return
	}
	at := policy.TimeOf(eventTime(e))
	key := string(e.InvolvedObject.UID) + "/" + e.Reason
	b.mu.Lock()
	s := b.claims[e.InvolvedObject.Name]
	told := b.interrupts[key]
	b.interrupts[key] = true
	b.mu.Unlock()
	if told || at < b.cfg.Since {
		return
	}
	n := backend.Notice{Machine: e.InvolvedObject.Name, At: at, Source: BackendName}
	if s != nil && s.claim.Status.ProviderID != "" {
		n.Machine = s.claim.Status.ProviderID
	}
	if e.Reason == eventInterrupted {
		n.ReclaimAt, n.ActedBy = at.Add(policy.NoticeLead(policy.AWS)), policy.ActorKarpenter
	}
	b.sink.Notice(n)
	if e.Reason == eventInterrupted && s != nil {
		b.reclaimed(s.claim, at)
	}
}

func eventTime(e *corev1.Event) time.Time {
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}

// reclaimed tells, once, that the provider takes the machine of a claim.
func (b *Backend) reclaimed(c *karpv1.NodeClaim, at policy.Time) {
	m := b.machine(c)
	b.mu.Lock()
	s := b.claims[c.Name]
	told := s == nil || s.lost
	if s != nil {
		s.lost = true
	}
	b.mu.Unlock()
	if !told && m.Market != "" {
		b.sink.Meet(backend.Event{Kind: backend.MetReclaim, Pool: m.Pool, Market: m.Market, At: at})
	}
}
