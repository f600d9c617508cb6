package karpenter

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Types of the conditions that this package sets on a CapacityPool.
const (
	// ConditionKarpenter is False if Karpenter or its node class is missing or not ready, or if
	// Karpenter refuses the NodePools that the pool requires. It is determined in every mode, so
	// that users see it before they activate the pool.
	ConditionKarpenter = "KarpenterReady"

	// ConditionFieldConflict is True while another field manager, named in the message, owns a
	// field that Spotter would write.
	ConditionFieldConflict = "FieldConflict"

	// ConditionTemplateHeld is True while the template of the pool differs from the template that
	// its nodes were created from. The message contains the number of nodes that the change would
	// replace.
	ConditionTemplateHeld = "TemplateHeld"

	// ConditionMarketsWidened is True while Karpenter may buy in Spot markets outside the plan,
	// because nodes run there or a NodePool cannot exclude them.
	ConditionMarketsWidened = "MarketsWidened"
)

// judgeMax limits the time of the requests that determine the conditions of a pool. judgedFor is
// the maximum age of the data that they are determined from.
const (
	judgeMax  = 2 * time.Second
	judgedFor = 10 * time.Second
)

// Conditions returns the conditions of a CapacityPool, by type. The caller sets the time and the
// generation.
func (b *Backend) Conditions(pool string) []metav1.Condition {
	ctx, cancel := context.WithTimeout(context.Background(), judgeMax)
	defer cancel()
	b.judge(ctx, pool)
	return b.states.conditions(pool)
}

// judge sets the condition that reports whether Karpenter can serve a pool.
func (b *Backend) judge(ctx context.Context, name string) {
	pool := &v1alpha1.CapacityPool{}
	if err := b.api.client.Get(ctx, client.ObjectKey{Name: name}, pool); err != nil || pool.Spec.Backend.Karpenter == nil {
		return
	}
	class, err := b.usable(ctx, pool)
	held := new(backend.Held)
	switch {
	case err == nil:
		b.states.setConditions(name, condition(ConditionKarpenter, true, "Found", "Karpenter and node class "+class+" exist"))
	case errors.As(err, &held):
		b.states.setConditions(name, condition(ConditionKarpenter, false, held.Reason, held.Message))
	default:
		b.states.setConditions(name, condition(ConditionKarpenter, false, "Unreadable", err.Error()))
	}
}

// usable returns the node class of a pool. It returns an error while the NodePools of the pool
// cannot be created or would buy nothing; the error is a Held if that is certain.
func (b *Backend) usable(ctx context.Context, pool *v1alpha1.CapacityPool) (class string, err error) {
	if err := b.classes.installed(); err != nil {
		return "", err
	}
	if refused := b.states.refusal(pool.Name, pool.Generation); refused != nil {
		return "", refused
	}
	ref, err := b.classes.of(ctx, pool, judgedFor)
	if err == nil {
		err = valid(ctx, pool, ref)
	}
	if err == nil {
		err = b.classes.ready(ctx, ref.Name, judgedFor)
	}
	return ref.Name, err
}

// valid returns a Held if Karpenter's own validation would refuse a NodePool that the pool
// requires, or if the labels of the NodePool contradict its requirements, so that Karpenter could
// never buy for it.
func valid(ctx context.Context, pool *v1alpha1.CapacityPool, class karpv1.NodeClassReference) error {
	for _, c := range capacities {
		reqs := []karpv1.NodeSelectorRequirementWithMinValues{in(karpv1.CapacityTypeLabelKey, c.String())}
		n, err := typed(manifest(NodePoolName(pool.Name, c), pool, target{}, template(pool, class), reqs))
		if err == nil {
			err = n.RuntimeValidate(ctx)
		}
		if err == nil {
			err = scheduling.NewLabelRequirements(n.Spec.Template.Labels).Intersects(scheduling.NewNodeSelectorRequirementsWithMinValues(reqs...))
		}
		if err != nil {
			return backend.Hold("NodePoolInvalid", "Karpenter would refuse NodePool %s, which the pool requires: %v",
				NodePoolName(pool.Name, c), err)
		}
	}
	return nil
}

var heldMissing = &backend.Held{Reason: "KarpenterMissing",
	Message: "the API server has no NodePools: Karpenter is not installed"}

// heldIfMissing returns a Held if err means that Karpenter is not installed, else err.
func heldIfMissing(err error) error {
	if missing(err) {
		return heldMissing
	}
	return err
}
