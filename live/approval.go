package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// In mode approve a step reads what a person has approved, from the API server, before it
// decides: what is approved is in the snapshot, so that a decision can be taken again. What
// the decision holds for want of approval becomes the SpotPlan of the pool. A notice, and
// pods that wait for nodes need no approval.

// A planState is the SpotPlan of a pool in one step.
type planState struct {
	required bool

	// plan is the SpotPlan as it was read, nil if it does not exist, and err why it could not be
	// read.
	plan *v1alpha1.SpotPlan
	err  error

	// next is its status from now on; nil leaves it as it is.
	next *v1alpha1.SpotPlanStatus
}

// readPlans notes in the pools of s which changes are approved. If the plan of a pool cannot be
// read, no change is.
func (c *Controller) readPlans(ctx context.Context, s *policy.Snapshot) error {
	c.current.plans = make([]planState, len(s.Pools))
	approving := false
	for i := range s.Pools {
		p, x := &s.Pools[i], &c.current.plans[i]
		if _, err := c.parts.Authority.Pool(ctx, p.Name); err != nil {
			return fmt.Errorf("reading the mode of pool %s: %w", p.Name, err)
		}
		x.required = c.parts.Authority.NeedsApproval(p.Name)
		p.Approval = policy.Approval{Required: x.required}
		if approving = approving || x.required; !x.required {
			continue
		}
		plan := &v1alpha1.SpotPlan{}
		switch err := c.parts.Reader.Get(ctx, client.ObjectKey{Name: p.Name}, plan); {
		case err == nil:
			x.plan = plan
		case !apierrors.IsNotFound(err):
			x.err = err
			c.parts.Log.Error("the plan that may be approved cannot be read: nothing is approved", "pool", p.Name, "error", err)
		}
		if x.plan != nil && x.plan.StateAt(c.parts.Clock.Now()) == v1alpha1.PlanApproved {
			for _, change := range x.plan.Status.Changes {
				p.Approval.Changes = append(p.Approval.Changes, change.Change)
			}
			slices.Sort(p.Approval.Changes)
		}
	}
	c.table.setApproving(approving)
	return nil
}

// propose makes plans of what is left undone for want of approval.
func (c *Controller) propose(s *policy.Snapshot, p *policy.Plan, v *outcomes) {
	found := proposals{s: s, v: v, wanted: make([][]v1alpha1.SpotPlanChange, len(s.Pools)),
		busy: make([]bool, len(s.Pools))}
	found.read(p)
	for _, d := range c.parts.Drains.Status() {
		if i := slices.IndexFunc(s.Pools, func(p policy.Pool) bool { return p.Name == d.Pool }); i >= 0 && !d.Unplanned {
			found.busy[i] = true
		}
	}
	for i := range s.Pools {
		x := &c.current.plans[i]
		switch {
		case !v.approve[i] || v.pools[i] != outcomeDone:
		case x.err != nil:
			c.publisher.hold(s, policy.PoolID(i), held{"ApprovalUnknown", fmt.Sprintf("SpotPlan %s cannot be read: %v",
				s.Pools[i].Name, x.err)})
		default:
			plan := &v1alpha1.SpotPlan{ObjectMeta: metav1.ObjectMeta{Name: s.Pools[i].Name}}
			if x.plan != nil {
				plan = x.plan.DeepCopy()
			}
			x.next = nextPlan(plan, found.wanted[i], found.busy[i], c.parts.Clock.Now(), c.cfg.PlanExpiry)
			if len(found.wanted[i]) > 0 {
				c.publisher.hold(s, policy.PoolID(i), held{"ApprovalPending", planMessage(plan)})
			}
		}
	}
}

// proposals are the changes of a plan, by PoolID: wanted those that wait for approval, and
// busy where one that is approved is under way.
type proposals struct {
	s      *policy.Snapshot
	v      *outcomes
	wanted [][]v1alpha1.SpotPlanChange
	busy   []bool
}

// read collects what a guardrail held for want of approval, and what a policy without
// guardrails planned.
func (x *proposals) read(p *policy.Plan) {
	for i := range p.Holds {
		if h := &p.Holds[i]; h.Why.Reason == policy.ReasonApproval && h.Pool >= 0 {
			x.want(h.Pool, strings.TrimPrefix(h.Why.Text, policy.Proposal), &h.Why)
		}
	}
	for i := range p.Steers {
		x.add(p.Steers[i].Pool, x.s.SteerChange(&p.Steers[i]), &p.Steers[i].Why)
	}
	for i := range p.Launches {
		x.add(p.Launches[i].Pool, x.s.LaunchChange(&p.Launches[i]), &p.Launches[i].Why)
	}
	for i := range p.Drains {
		x.add(x.s.Nodes[p.Drains[i].Node].Pool, x.s.DrainChange(p.Drains[i].Node), &p.Drains[i].Why)
	}
}

func (x *proposals) add(pool policy.PoolID, change string, why *policy.Why) {
	switch {
	case pool < 0 || change == "" || !x.v.approve[pool]:
	case x.v.approved(x.s, pool, change):
		x.busy[pool] = true
	default:
		x.want(pool, change, why)
	}
}

func (x *proposals) want(pool policy.PoolID, change string, why *policy.Why) {
	if !x.v.approve[pool] {
		return
	}
	c := v1alpha1.SpotPlanChange{Change: change}
	if saving := why.Before - why.After; saving != 0 {
		c.SavingPerHour = strings.ReplaceAll(saving.Short(), "−", "-")
	}
	x.wanted[pool] = append(x.wanted[pool], c)
}

// nextPlan has plan become the one that holds from now on, and returns its status. A plan
// stays while nothing is wanted that it lacks, so that its digest does too, and while it is
// carried out. One that has expired is made again, with another digest.
func nextPlan(
	plan *v1alpha1.SpotPlan, wanted []v1alpha1.SpotPlanChange, busy bool, now time.Time, expiry time.Duration,
) *v1alpha1.SpotPlanStatus {
	state := plan.StateAt(now)
	lacks := slices.ContainsFunc(wanted, func(c v1alpha1.SpotPlanChange) bool { return !plan.Has(c.Change) })
	underWay := state == v1alpha1.PlanApproved && busy
	if len(wanted) > 0 && !underWay && (lacks || state == v1alpha1.PlanExpired) {
		published := metav1.NewTime(now.Truncate(time.Second))
		plan.Status = v1alpha1.SpotPlanStatus{Published: published, Expires: metav1.NewTime(published.Add(expiry)),
			Changes: distinct(wanted)}
	}
	if len(plan.Status.Changes) > 0 {
		plan.Status.Digest, plan.Status.State = plan.Sum(), plan.StateAt(now)
	}
	return &plan.Status
}

// distinct returns changes ascending and each once, as many as a plan may have.
func distinct(changes []v1alpha1.SpotPlanChange) []v1alpha1.SpotPlanChange {
	slices.SortStableFunc(changes, func(a, b v1alpha1.SpotPlanChange) int { return cmp.Compare(a.Change, b.Change) })
	changes = slices.CompactFunc(changes, func(a, b v1alpha1.SpotPlanChange) bool { return a.Change == b.Change })
	return changes[:min(len(changes), v1alpha1.PlanChangesMax)]
}

// planMessage says what a plan waits for.
func planMessage(p *v1alpha1.SpotPlan) string {
	st, n := &p.Status, len(p.Status.Changes)
	switch st.State {
	case v1alpha1.PlanDigestMismatch:
		return fmt.Sprintf("SpotPlan %s is approved with the digest %s, and the plan has %s: it waits for its own approval",
			p.Name, p.Spec.Digest, st.Digest)
	case v1alpha1.PlanApproved:
		return fmt.Sprintf("SpotPlan %s is approved and under way: other changes wait for the next plan", p.Name)
	}
	return fmt.Sprintf("SpotPlan %s, digest %s, waits for approval of %d changes until %s", p.Name, st.Digest, n,
		st.Expires.UTC().Format(time.RFC3339))
}

// writePlans writes the plans that have changed. A plan that was changed meanwhile is
// written by the next step.
func (c *Controller) writePlans(ctx context.Context) {
	for i := range c.current.plans {
		x := &c.current.plans[i]
		if x.next == nil || x.plan == nil && len(x.next.Changes) == 0 || x.plan != nil && equalPlans(&x.plan.Status, x.next) {
			continue
		}
		if err := c.writePlan(ctx, c.current.snapshot.Pools[i].Name, x); err != nil {
			c.parts.Log.Error("the plan that waits for approval is not published", "pool", c.current.snapshot.Pools[i].Name,
				"error", err)
		}
	}
}

func equalPlans(a, b *v1alpha1.SpotPlanStatus) bool {
	return a.State == b.State && a.Digest == b.Digest && a.Published.Equal(&b.Published) && a.Expires.Equal(&b.Expires)
}

// writePlan creates the SpotPlan of a pool, which is deleted with the pool, and writes its status.
func (c *Controller) writePlan(ctx context.Context, pool string, x *planState) error {
	plan := x.plan
	if plan == nil {
		owner := &v1alpha1.CapacityPool{}
		if err := c.parts.Client.Get(ctx, client.ObjectKey{Name: pool}, owner); err != nil {
			return fmt.Errorf("reading CapacityPool %s: %w", pool, err)
		}
		plan = &v1alpha1.SpotPlan{ObjectMeta: metav1.ObjectMeta{Name: pool, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("CapacityPool")),
		}}}
		if err := c.parts.Client.Create(ctx, plan, fieldOwner); err != nil {
			return fmt.Errorf("creating SpotPlan %s: %w", pool, err)
		}
	}
	plan.Status = *x.next
	if err := c.parts.Client.Status().Update(ctx, plan, fieldOwner); err != nil {
		return fmt.Errorf("writing the status of SpotPlan %s: %w", pool, err)
	}
	return nil
}

// An approvalWatch remembers what persons have said of the plans.
type approvalWatch struct {
	known string
	read  bool
}

// changed reports whether a person has approved a plan since it was last asked, or has taken
// that back.
func (a *approvalWatch) changed(ctx context.Context, r client.Reader) bool {
	var list v1alpha1.SpotPlanList
	if err := r.List(ctx, &list); err != nil {
		return false // each step reads the plans too
	}
	said := ""
	for i := range list.Items {
		said += fmt.Sprintf("%s %t %s\n", list.Items[i].Name, list.Items[i].Spec.Approved, list.Items[i].Spec.Digest)
	}
	is := a.read && said != a.known
	a.known, a.read = said, true
	return is
}

func (t *table) setApproving(is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.approving = is
}

func (t *table) isApproving() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.approving
}
