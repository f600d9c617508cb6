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

// Reasons of the Events in which Karpenter for AWS reports warnings of the provider. Karpenter
// drains a node that will be reclaimed. For a rebalance recommendation it only creates an Event.
const (
	eventInterrupted    = "SpotInterrupted"
	eventRecommendation = "SpotRebalanceRecommendation"
)

// watchEvents reports the warnings of the provider that Karpenter publishes as Events, until ctx
// ends. It keeps only Events about NodeClaims in memory.
func (i *informer) watchEvents(ctx context.Context) error {
	c, err := cache.New(i.mgr.GetConfig(), cache.Options{
		HTTPClient: i.mgr.GetHTTPClient(), Scheme: i.mgr.GetScheme(), Mapper: i.mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Event{}: {Namespaces: map[string]cache.Config{metav1.NamespaceDefault: {}},
				Field: fields.OneTermEqualSelector("involvedObject.kind", nodeClaimKind.Kind)},
		},
	})
	if err != nil {
		return fmt.Errorf("watching Events: %w", err)
	}
	informer, err := c.GetInformer(ctx, &corev1.Event{}, cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(handler(func(_, e *corev1.Event) { i.eventSeen(e) }, func(*corev1.Event) {}))
	}
	if err != nil {
		return fmt.Errorf("watching Events: %w", err)
	}
	return c.Start(ctx)
}

// eventSeen reports the warning in an Event, once per NodeClaim and reason.
func (i *informer) eventSeen(e *corev1.Event) {
	if e.Reason != eventInterrupted && e.Reason != eventRecommendation || !byKarpenter(e) {
		return
	}
	at := policy.TimeOf(eventTime(e))
	key := string(e.InvolvedObject.UID) + "/" + e.Reason
	i.mu.Lock()
	known := i.reported[key]
	i.reported[key] = true
	i.mu.Unlock()
	if known || at < i.cfg.Since {
		return
	}
	n := backend.Notice{Machine: e.InvolvedObject.Name, At: at, Source: BackendName}
	if e.Reason == eventInterrupted {
		n.ReclaimAt, n.ActedBy = at.Add(policy.NoticeLead(policy.AWS)), policy.ActorKarpenter
	}
	var m backend.Machine
	c := &karpv1.NodeClaim{}
	if err := i.api.client.Get(context.Background(), client.ObjectKey{Name: e.InvolvedObject.Name}, c); err == nil { // from the cache
		m = i.claims.machine(c)
		n.Machine = cmp.Or(m.ProviderID, m.Name)
	}
	i.sink.Notice(n)
	if e.Reason == eventInterrupted && m.Market != "" {
		i.sink.Meet(backend.Event{Kind: backend.MetReclaim, Pool: m.Pool, Market: m.Market, At: at})
	}
}

// byKarpenter reports whether Karpenter created an Event. Events about NodeClaims, which are
// cluster-scoped, are in the default namespace. Events of other namespaces are ignored, since any
// user of such a namespace may create them.
func byKarpenter(e *corev1.Event) bool {
	return e.Namespace == metav1.NamespaceDefault && e.InvolvedObject.Namespace == "" &&
		cmp.Or(e.ReportingController, e.Source.Component) == "karpenter"
}

func eventTime(e *corev1.Event) time.Time {
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}
