package live

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A decider is the policy that the driver calls. It wraps the actual policy, rebuilds it when the
// pools name other policies, and replaces it after a panic.
type decider struct {
	make func(manifests []string) (policy.Policy, error)

	// review is called with every plan before the memory is saved, and so before any action.
	review func(*policy.Snapshot, *policy.Plan)

	inner     policy.Policy
	manifests []string

	// refused contains the error of each policy that pools name and that cannot be built.
	refused map[string]string

	// panicked describes the panic of the last decision; empty if there was none.
	panicked string
}

// newDecider builds the policy for pools that do not name a policy, so that an invalid
// configuration is found before the first step.
func newDecider(mk func([]string) (policy.Policy, error), review func(*policy.Snapshot, *policy.Plan)) (*decider,
	error) {
	d := &decider{make: mk, review: review}
	inner, err := mk(nil)
	if err != nil {
		return nil, fmt.Errorf("making the policy: %w", err)
	}
	d.inner = inner
	return d, nil
}

// Name returns the name of the actual policy.
func (d *decider) Name() string { return d.inner.Name() }

// Decide calls the actual policy. If the policy panics, Decide drains the nodes under notice, plans
// nothing else, and leaves the memory otherwise unchanged. The next decision is made by a rebuilt
// policy, since a policy that panicked may be in any state.
func (d *decider) Decide(s *policy.Snapshot, m policy.Memory) (plan policy.Plan, next policy.Memory) {
	d.adopt(s)
	defer func() { d.review(s, &plan) }()
	defer func() {
		if bug := recover(); bug != nil {
			d.panicked = fmt.Sprintf("%v\n%s", bug, debug.Stack())
			d.inner, d.manifests = nil, nil
			plan, next = obey(s, m)
		}
	}()
	d.panicked = ""
	return d.inner.Decide(s, m)
}

// adopt rebuilds the policy if the pools name other policies than it was built for. A policy that
// cannot be built is dropped: the pools that name it are held.
func (d *decider) adopt(s *policy.Snapshot) {
	var named []string
	for i := range s.Pools {
		if p := s.Pools[i].Policy; p != "" && !slices.Contains(named, p) {
			named = append(named, p)
		}
	}
	slices.Sort(named)
	if d.inner != nil && slices.Equal(named, d.manifests) {
		return
	}
	d.manifests, d.refused = named, map[string]string{}
	if inner, err := d.make(named); err == nil {
		d.inner = inner
		return
	}
	var good []string
	for _, spec := range named {
		if _, err := d.make([]string{spec}); err != nil {
			d.refused[spec] = err.Error()
			continue
		}
		good = append(good, spec)
	}
	inner, err := d.make(good)
	if err != nil { // no policy is invalid alone, but their combination is
		inner, _ = d.make(nil) // it succeeded in newDecider
	}
	d.inner = inner
}

// obey returns the plan that is necessary even without a decision: it drains the nodes under
// notice. Changes in progress continue.
func obey(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	m.Decisions++
	return policy.Plan{Drains: placement.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep)}, m
}
