package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// SourceUsage is the name under which snapshots say how old the usage of nodes is.
const SourceUsage = "usage"

// ConditionUsage says whether the usage of nodes is known.
const ConditionUsage = "UsageKnown"

// A usage is what nodes use, as metrics-server measured it.
type usage struct {
	at    policy.Time // of the newest measurement; zero without
	nodes map[string]policy.Resources

	// reason and why say why it is not known; empty when it is.
	reason, why string
}

// FollowUsage reads what nodes use from metrics-server, through r, until ctx ends,
// which is its good end. Decisions are made on what pods request; usage is for the
// reader of their account. A cluster without metrics-server has none, which the
// condition [ConditionUsage] says.
func (o *Observer) FollowUsage(ctx context.Context, r client.Reader, c clock.WithTicker, every time.Duration) error {
	if every <= 0 {
		return fmt.Errorf("cluster: usage is to be read every %v, which is not above 0", every)
	}
	tick := c.NewTicker(every)
	defer tick.Stop()
	for {
		o.readUsage(ctx, r)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// readUsage reads once. What was read before stands when it fails, and grows old.
func (o *Observer) readUsage(ctx context.Context, r client.Reader) {
	var list metricsv1beta1.NodeMetricsList
	err := r.List(ctx, &list)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.usage.reason, o.usage.why = unusable(err)
		return
	}
	u := usage{nodes: make(map[string]policy.Resources, len(list.Items)), at: o.usage.at}
	for i := range list.Items {
		m := &list.Items[i]
		size, _ := kube.NodeResources(m.Usage)
		u.nodes[m.Name] = size
		u.at = max(u.at, o.clamp(policy.TimeOf(m.Timestamp.Time)))
	}
	if len(u.nodes) == 0 {
		u.reason, u.why = "NoMetrics", "metrics-server has measured no node yet"
	}
	o.usage = u
}

// unusable says why usage cannot be read.
func unusable(err error) (reason, why string) {
	var partial *discovery.ErrGroupDiscoveryFailed
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err), errors.As(err, &partial):
		return "NoMetricsServer", "the cluster has no metrics-server, so what nodes really use is not known; decisions go by what pods request"
	case apierrors.IsForbidden(err):
		return "Forbidden", "what nodes use may not be read: " + err.Error()
	}
	return "Failed", "what nodes use could not be read: " + err.Error()
}

// Usage returns what nodes use, by their names, and as of when; zero when it is not
// known.
func (o *Observer) Usage() (map[string]policy.Resources, policy.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.usage.nodes), o.usage.at
}

// condition says whether usage is known.
func (u *usage) condition() metav1.Condition {
	switch {
	case u.reason != "":
		return metav1.Condition{Type: ConditionUsage, Status: metav1.ConditionFalse, Reason: u.reason, Message: u.why}
	case u.at == 0:
		return metav1.Condition{Type: ConditionUsage, Status: metav1.ConditionFalse, Reason: "NotRead", Message: "what nodes use was not read"}
	}
	return metav1.Condition{Type: ConditionUsage, Status: metav1.ConditionTrue, Reason: "Measured"}
}
