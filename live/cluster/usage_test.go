package cluster_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/policy"
)

var _ cluster.Book = (*market.Book)(nil)

// TestUsage reads what nodes use, says so when it cannot, and lets what it read grow
// old.
func TestUsage(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := metricsv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	nodes := schema.GroupResource{Group: "metrics.k8s.io", Resource: "nodes"}
	var fails error
	r := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&metricsv1beta1.NodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Timestamp: metav1.Time{Time: epoch.Add(-time.Minute)}, Usage: corev1.ResourceList{"cpu": resource.MustParse("250m"),
			"memory": resource.MustParse("1Gi")}}).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList,
			o ...client.ListOption) error {
			if fails != nil {
				return fails
			}
			return c.List(ctx, l, o...)
		}}).Build()
	l := newLab(t, capacityPool("p"), node("n"))
	source := func(s *policy.Snapshot) int {
		return slices.IndexFunc(s.Sources, func(x policy.Source) bool { return x.Name == cluster.SourceUsage })
	}
	read := func() metav1.Condition {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := l.observer.FollowUsage(ctx, cluster.NewMetricsServer(r), clocktesting.NewFakeClock(epoch), time.Minute); err != nil {
			t.Fatal(err)
		}
		all := l.observer.Conditions("p")
		return all[slices.IndexFunc(all, func(c metav1.Condition) bool { return c.Type == cluster.ConditionUsage })]
	}
	if s := l.observe(0); source(s) >= 0 {
		t.Errorf("usage that was not read is a source: %+v", s.Sources)
	}
	for _, c := range []struct {
		err    error
		reason string
	}{
		{apierrors.NewNotFound(nodes, ""), "NoMetricsServer"},
		{apierrors.NewForbidden(nodes, "", nil), "Forbidden"},
		{apierrors.NewServiceUnavailable("later"), "Failed"},
	} {
		fails = c.err
		if got := read(); got.Status != metav1.ConditionFalse || got.Reason != c.reason || got.Message == "" {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
	fails = nil
	if got := read(); got.Status != metav1.ConditionTrue {
		t.Errorf("%+v", got)
	}
	used, when := l.observer.Usage()
	if used["n"].CPU != 250 || used["n"].Memory != 1<<30 || when != at(-time.Minute) {
		t.Errorf("%+v as of %v", used, when)
	}
	fails = apierrors.NewServiceUnavailable("later")
	if got := read(); got.Status != metav1.ConditionFalse {
		t.Errorf("%+v", got)
	}
	s := l.observe(time.Hour)
	if i := source(s); i < 0 || s.Sources[i].At != at(-time.Minute) {
		t.Errorf("%+v", s.Sources)
	}
	if err := l.observer.FollowUsage(t.Context(), cluster.NewMetricsServer(r), clocktesting.NewFakeClock(epoch), 0); err == nil {
		t.Error("usage is read every 0 s")
	}
}
