package karpenter

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// TestPoolThatCannotWork: what Karpenter would refuse is said of a pool before anything is
// written for it, so also in shadow, and for as long as it is so, whatever is tried.
func TestPoolThatCannotWork(t *testing.T) {
	for _, c := range []struct {
		name, reason, says string
		change             func(*v1alpha1.CapacityPool)
		class              *unstructured.Unstructured
	}{
		{"capacity type", "NodePoolInvalid", "web-od", func(p *v1alpha1.CapacityPool) {
			p.Spec.Template.Labels = map[string]string{"karpenter.sh/capacity-type": "spot"}
		}, nodeClass(true)},
		{"no node class", "NodeClassMissing", "default", func(*v1alpha1.CapacityPool) {}, nil},
		{"node class not ready", "NodeClassNotReady", "as the test says", func(*v1alpha1.CapacityPool) {}, nodeClass(false)},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := capacityPool()
			c.change(pool)
			objects := []client.Object{pool}
			if c.class != nil {
				objects = append(objects, c.class)
			}
			b := newBench(t, objects...)
			said := func(when string) {
				t.Helper()
				if x := b.condition(ConditionKarpenter); x.Status != metav1.ConditionFalse || x.Reason != c.reason ||
					!strings.Contains(x.Message, c.says) {
					t.Errorf("%s: %+v, want that it is False for %s and names %s", when, x, c.reason, c.says)
				}
			}
			said("in shadow")
			if len(b.writes) != 0 {
				t.Errorf("written to find that: %v", b.writes)
			}
			s := newSnapshot(b.now())
			err := b.steer(s, policy.Steer{Share: 1, Fallback: true})
			said("steered")
			if c.reason == "NodePoolInvalid" {
				holds(t, err, c.reason)
				if len(b.writes) != 0 {
					t.Errorf("written: %v", b.writes)
				}
			}
			b.clock.Step(time.Minute)
			_ = b.Tend(t.Context(), s)
			said("tended")
			b.restart()
			said("restarted")
			if c.reason != "NodePoolInvalid" {
				return
			}
			again(b, pool)
			pool.Spec.Template = capacityPool().Spec.Template
			if err := b.client.Update(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			if x := b.condition(ConditionKarpenter); x.Status != metav1.ConditionTrue {
				t.Errorf("mended: %+v", x)
			}
		})
	}
}

// TestRefusedByTheAPIServer: a refusal that only the definition of NodePools can give is reported
// until the NodePool is accepted, or the pool requires something else.
func TestRefusedByTheAPIServer(t *testing.T) {
	pool := capacityPool()
	b := newBench(t, pool, nodeClass(true))
	s := newSnapshot(b.now())
	b.fail = func(verb string, _ any) error {
		if verb != "apply" {
			return nil
		}
		return apierrors.NewInvalid(nodePoolKind.GroupKind(), "web-spot",
			field.ErrorList{field.Invalid(field.NewPath("spec", "schedule"), "every day", "as the test says")})
	}
	holds(t, b.steer(s, policy.Steer{Share: 1, Fallback: true}), "NodePoolRefused")
	_ = b.Tend(t.Context(), s)
	if x := b.condition(ConditionKarpenter); x.Status != metav1.ConditionFalse || x.Reason != "NodePoolRefused" ||
		!strings.Contains(x.Message, "schedule") {
		t.Errorf("refused: %+v", x)
	}
	b.fail = nil
	again(b, pool)
	pool.Spec.Disruption = v1alpha1.Disruption{ConsolidationPolicy: v1alpha1.ConsolidateWhenEmpty}
	if err := b.client.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	b.clock.Step(11 * time.Minute)
	b.mustSteer(s, policy.Steer{Share: 1, Fallback: true})
	if x := b.condition(ConditionKarpenter); x.Status != metav1.ConditionTrue {
		t.Errorf("mended: %+v", x)
	}
}

// TestRule02InvalidEditKeepsWhatIsThere: a pool with nodes that is edited into one that Karpenter
// would refuse stays as it was made, and its limits follow.
func TestRule02InvalidEditKeepsWhatIsThere(t *testing.T) {
	pool := capacityPool()
	b := newBench(t, pool, nodeClass(true))
	s := newSnapshot(b.now())
	b.mustSteer(s, policy.Steer{Share: 0.5, Fallback: true})
	again(b, pool)
	pool.Spec.Template.Labels = map[string]string{"karpenter.sh/capacity-type": "spot"} // not of web-od
	if err := b.client.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	withNode(s, "n", market(s, 1, 0, policy.OnDemand))
	b.clock.Step(time.Minute)
	b.writes = nil
	_ = b.steer(s, policy.Steer{Share: 0.5, Fallback: true})
	if n := b.nodePool("web-spot"); len(b.writes) == 0 || n.Spec.Template.Labels["team"] != "shop" ||
		n.Spec.Template.Labels["karpenter.sh/capacity-type"] != "" {
		t.Errorf("written %v, labels %v", b.writes, n.Spec.Template.Labels)
	}
	if x := b.condition(ConditionKarpenter); x.Status != metav1.ConditionFalse || x.Reason != "NodePoolInvalid" {
		t.Errorf("condition %+v", x)
	}
}
