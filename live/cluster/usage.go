package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/kube"
)

// SourceUsage is the name of the source in snapshots that contains the age of the usage of nodes.
const SourceUsage = "usage"

// ConditionUsage is the condition that reports whether the usage of nodes is known.
const ConditionUsage = "UsageKnown"

// A Usage is the measured usage of nodes.
type Usage struct {
	// Nodes contains the usage of each node by name. Nodes whose usage is unknown are missing.
	Nodes map[string]policy.Resources

	// At is the time of the measurement; zero if the source does not report it.
	At policy.Time

	// Odd describes the data that was ignored.
	Odd []string
}

// A UsageSource measures the usage of nodes. If the reason of an error can be reported as a
// condition reason, the error is a [UsageError].
type UsageSource interface {
	Read(context.Context) (Usage, error)
}

// A UsageError is the reason that usage cannot be read. Reason is the reason of a condition.
type UsageError struct{ Reason, Text string }

func (e *UsageError) Error() string { return e.Text }

// A usage is the usage of nodes at the last read.
type usage struct {
	at    policy.Time // time of the newest measurement; zero before the first
	nodes map[string]policy.Resources

	// reason and why explain why usage is not known; empty if it is. part describes the part that
	// is not known.
	reason, why string
	part        string
}

// FollowUsage reads the usage of nodes until ctx ends, and then returns nil. Decisions are based on
// the requests of pods; usage is only shown to users. If it cannot be read, the condition
// [ConditionUsage] contains the reason, and the last values are kept with their age.
func (o *Observer) FollowUsage(ctx context.Context, from UsageSource, c clock.WithTicker, every time.Duration) error {
	if every <= 0 {
		return fmt.Errorf("cluster: usage interval %v is not above 0", every)
	}
	if o.Await(ctx) != nil { // before the nodes are known, every node would seem to be in another cluster
		return nil
	}
	tick := c.NewTicker(every)
	defer tick.Stop()
	for {
		o.readUsage(ctx, from)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// readUsage reads the usage once. If that fails, the last values are kept.
func (o *Observer) readUsage(ctx context.Context, from UsageSource) {
	u, err := from.Read(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	known := make(map[string]policy.Resources, len(u.Nodes))
	for name, size := range u.Nodes {
		if _, here := o.nodes.slots.byName[name]; here {
			known[name] = size
		}
	}
	if err == nil && len(known) == 0 && len(u.Nodes) > 0 {
		err = &UsageError{"NoSuchNodes", joined(fmt.Sprintf("none of the %d measured nodes, such as %q, is in this cluster",
			len(u.Nodes), least(u.Nodes)), u.Odd)}
	}
	if err != nil {
		o.usage.reason, o.usage.why = "Failed", "node usage could not be read: "+err.Error()
		var reported *UsageError
		if errors.As(err, &reported) {
			o.usage.reason, o.usage.why = reported.Reason, reported.Text
		}
		return
	}
	if foreign := len(u.Nodes) - len(known); foreign > 0 {
		u.Odd = append(u.Odd, fmt.Sprintf("measured but not in this cluster: %s", figures.Count(foreign, "node")))
	}
	o.usage = usage{at: max(o.usage.at, o.clock.clamp(u.At)), nodes: known}
	if len(u.Odd) > 0 {
		o.usage.part = joined(fmt.Sprintf("usage is known of %s", figures.Count(len(known), "node")), u.Odd)
	}
}

// oddMax is the number of problems that are described; further problems are only counted.
const oddMax = 3

// joined appends problems to a text.
func joined(text string, odd []string) string {
	if len(odd) == 0 {
		return text
	}
	reported := text + "; " + strings.Join(odd[:min(len(odd), oddMax)], "; ")
	if more := len(odd) - oddMax; more > 0 {
		reported += fmt.Sprintf("; and %d more", more)
	}
	return reported
}

// least returns the first name, so that equal problems are reported with equal text.
func least(nodes map[string]policy.Resources) string {
	return slices.Min(slices.Collect(maps.Keys(nodes)))
}

// metricsServer is a [UsageSource] that lists the measurements of metrics-server.
type metricsServer struct{ client.Reader }

// NewMetricsServer returns a source that lists the measurements of metrics-server.
func NewMetricsServer(r client.Reader) UsageSource { return metricsServer{r} }

// Read implements [UsageSource].
func (m metricsServer) Read(ctx context.Context) (Usage, error) {
	var list metricsv1beta1.NodeMetricsList
	if err := m.List(ctx, &list); err != nil {
		return Usage{}, unusable(err)
	}
	u := Usage{Nodes: make(map[string]policy.Resources, len(list.Items))}
	for i := range list.Items {
		x := &list.Items[i]
		size, _ := kube.NodeResources(x.Usage)
		u.Nodes[x.Name] = size
		u.At = max(u.At, policy.TimeOf(x.Timestamp.Time))
	}
	if len(u.Nodes) == 0 {
		return u, &UsageError{"NoMetrics", "metrics-server has measured no node yet"}
	}
	return u, nil
}

// unusable returns the reason that metrics-server cannot be read.
func unusable(err error) error {
	var partial *discovery.ErrGroupDiscoveryFailed
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err), errors.As(err, &partial):
		return &UsageError{"NoMetricsServer",
			"the cluster has no metrics-server, so actual node usage is unknown; decisions use pod requests"}
	case apierrors.IsForbidden(err):
		return &UsageError{"Forbidden", "node usage may not be read: " + err.Error()}
	}
	return err
}

// Usage returns the usage of nodes by name, and the time of its measurement; zero if usage is not
// known.
func (o *Observer) Usage() (map[string]policy.Resources, policy.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.usage.nodes), o.usage.at
}

// condition reports whether usage is known.
func (u *usage) condition() metav1.Condition {
	switch {
	case u.reason != "":
		return metav1.Condition{Type: ConditionUsage, Status: metav1.ConditionFalse, Reason: u.reason, Message: u.why}
	case u.at == 0:
		return metav1.Condition{Type: ConditionUsage, Status: metav1.ConditionFalse, Reason: "NotRead",
			Message: "node usage was not read"}
	}
	if u.part != "" {
		return metav1.Condition{Type: ConditionUsage, Status: metav1.ConditionTrue, Reason: "MeasuredInPart", Message: u.part}
	}
	return metav1.Condition{Type: ConditionUsage, Status: metav1.ConditionTrue, Reason: "Measured"}
}
