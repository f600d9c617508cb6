package live

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A decider is the policy that the driver sees. It rebuilds the real policy when pools name other
// ones, and replaces it when it panics.
type decider struct {
	make func(manifests []string) (policy.Policy, error)

	// review learns of every plan before the memory is saved, which is before
	// anything is done.
	review func(*policy.Snapshot, *policy.Plan)

	inner     policy.Policy
	manifests []string

	// refused are the policies that pools name and that cannot be made, each with
	// what is wrong with it.
	refused map[string]string

	// panicked is what the last decision panicked with; empty when it did not.
	panicked string
}

// newDecider makes the policy for pools that name none, so that what is wrong with
// the configuration is found before the first step.
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

// Name returns that of the real policy.
func (d *decider) Name() string { return d.inner.Name() }

// Decide calls the real policy. If that panics, nodes under notice are drained and nothing else is
// touched: the memory is unchanged, and the next decision is made by a rebuilt policy, since a
// policy that panicked may be in any state.
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

// adopt rebuilds the policy if the pools name others than it was built for. A policy that cannot be
// built is dropped: the pools that name it are held.
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
	if err != nil { // none of them is at fault alone, and it was made without any
		inner, _ = d.make(nil) // newDecider made it from the same
	}
	d.inner = inner
}

// obey plans what must be done even without a decision: the nodes under notice are drained, and
// changes in progress continue.
func obey(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	m.Decisions++
	return policy.Plan{Drains: placement.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep)}, m
}
