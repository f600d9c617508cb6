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

// In mode approve, each step reads the approved SpotPlans from the API server before it decides.
// The approved changes are part of the snapshot, so that a recorded decision can be replayed.
// Changes that are held because they lack approval become the SpotPlan of their pool. The response
// to a notice, and launches for pending pods, need no approval.

// A planState is the state of a pool's SpotPlan in one step.
type planState struct {
	required bool

	// plan is the SpotPlan that was read; nil if it does not exist. err is the reason that it could
	// not be read.
	plan *v1alpha1.SpotPlan
	err  error

	// next is the new status of the plan; nil leaves the status unchanged.
	next *v1alpha1.SpotPlanStatus
}

// readPlans records the approved changes in the pools of s. If the plan of a pool cannot be read,
// its changes do not count as approved.
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

// propose turns the changes that lack approval into SpotPlans.
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

// proposals collects the changes of a plan, indexed by PoolID. wanted contains the changes that
// wait for approval; busy reports whether an approved change is in progress.
type proposals struct {
	s      *policy.Snapshot
	v      *outcomes
	wanted [][]v1alpha1.SpotPlanChange
	busy   []bool
}

// read collects the changes that a guardrail held because they lack approval, and the changes
// planned by a policy without guardrails.
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

// nextPlan updates plan and returns its new status. A plan, and so its digest, stays the same while
// it contains every wanted change and while it is being carried out. An expired plan is published
// again with a new digest.
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

// distinct returns changes sorted and without duplicates, at most PlanChangesMax of them.
func distinct(changes []v1alpha1.SpotPlanChange) []v1alpha1.SpotPlanChange {
	slices.SortStableFunc(changes, func(a, b v1alpha1.SpotPlanChange) int { return cmp.Compare(a.Change, b.Change) })
	changes = slices.CompactFunc(changes, func(a, b v1alpha1.SpotPlanChange) bool { return a.Change == b.Change })
	return changes[:min(len(changes), v1alpha1.PlanChangesMax)]
}

// planMessage describes what a plan waits for.
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

// writePlans writes the plans that have changed. If another client has changed a plan in the
// meantime, the next step writes it.
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

// writePlan creates the SpotPlan of a pool if necessary, and writes its status. The CapacityPool
// owns the SpotPlan, so the plan is deleted with the pool.
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

// An approvalWatch remembers the approvals in the SpotPlans.
type approvalWatch struct {
	known string
	read  bool
}

// changed reports whether an approval was given or withdrawn since the last call.
func (a *approvalWatch) changed(ctx context.Context, r client.Reader) bool {
	var list v1alpha1.SpotPlanList
	if err := r.List(ctx, &list); err != nil {
		return false // each step reads the plans as well
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
