package registry

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A router decides for each pool with the policy that its manifest names. Every policy receives the
// whole cluster, with the pools of other policies switched off.
type router struct {
	specs    []string // specs[0] is the name of the default policy; the rest is in order of appearance
	policies []policy.Policy
}

func newManifest(params []Parameter, o *Options) (policy.Policy, bool, error) {
	if len(params) > 0 {
		return nil, false, fmt.Errorf("%w: %s: unknown parameter %q: it takes none", ErrParameter, Manifest, params[0].Key)
	}
	r := &router{}
	for _, spec := range append([]string{DefaultPolicy}, o.Manifests...) {
		if spec == "" || slices.Contains(r.specs, spec) {
			continue
		}
		if name, _, err := split(spec); err == nil && name == Manifest {
			return nil, false, fmt.Errorf("%w: a manifest names the policy %q", ErrUnknown, Manifest)
		}
		p, err := newNamed(spec, *o)
		if err != nil {
			return nil, false, fmt.Errorf("named by a manifest: %w", err)
		}
		r.specs, r.policies = append(r.specs, spec), append(r.policies, p)
	}
	return r, true, nil // each policy has its own guardrails
}

// newNamed returns the policy that a manifest names. The authors of manifests may lack permission
// to read files, so a parameter that refers to a file contains a plain name, and the reader decides
// where the file is stored.
func newNamed(spec string, o Options) (policy.Policy, error) {
	_, params, err := split(spec)
	if err != nil {
		return nil, err
	}
	for _, p := range params {
		if slices.Contains(opening, p.Key) && !plainName().MatchString(p.Value) {
			return nil, fmt.Errorf("%w: %s %q: a manifest gives a name of letters, digits, '-', '_' and '.', and no path",
				ErrParameter, p.Key, p.Value)
		}
	}
	return newGuarded(spec, o)
}

// opening are the parameters whose values are names of files to open. plainName matches the values
// that a manifest may use for them; the definition of CapacityPool has the same rule.
var (
	opening   = []string{"bundle", "runtime"}
	plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`) })
)

// Name returns "manifest".
func (r *router) Name() string { return Manifest }

// Decide calls each policy for its pools and merges the plans in the order of the policies. A pool
// that names an unknown policy gets a hold.
func (r *router) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	var plan policy.Plan
	decisions := m.Decisions
	for i := range s.Pools {
		if s.Pools[i].Mode != policy.ModeOff && r.index(&s.Pools[i]) < 0 {
			plan.Holds = append(plan.Holds, policy.Hold{Pool: s.Pools[i].ID, Node: policy.None, Why: policy.Why{
				Reason: policy.ReasonConfigured, Text: "the policy that the manifest names was not loaded: " + s.Pools[i].Policy,
			}})
		}
	}
	for k := range r.policies {
		view, mine := r.view(s, k)
		if !mine {
			continue
		}
		view = expecting(view, plan.Launches)
		var part policy.Plan
		part, m = r.policies[k].Decide(view, m)
		r.join(&plan, &part, s, k)
	}
	if plan.Wake == 0 {
		plan.Wake = policy.NextStep(s.Now, policy.DefaultStep)
	}
	m.Decisions = decisions + 1
	return plan, m
}

// index returns the index of the policy for p, or -1 if the policy is unknown.
func (r *router) index(p *policy.Pool) int {
	if p.Policy == "" {
		return 0
	}
	return slices.Index(r.specs, p.Policy)
}

// view returns s with the pools of other policies switched off, and reports whether policy k has
// any pools.
func (r *router) view(s *policy.Snapshot, k int) (*policy.Snapshot, bool) {
	mine, others := false, false
	for i := range s.Pools {
		if r.index(&s.Pools[i]) == k {
			mine = true
		} else {
			others = true
		}
	}
	if !others {
		return s, mine
	}
	view := *s
	view.Pools = slices.Clone(s.Pools)
	for i := range view.Pools {
		if r.index(&view.Pools[i]) != k {
			view.Pools[i].Mode = policy.ModeOff
		}
	}
	return &view, mine
}

// expecting returns s with launching nodes added for the launches that are for pending pods, so
// that two policies do not buy for the same pod.
func expecting(s *policy.Snapshot, launches []policy.Launch) *policy.Snapshot {
	view := s
	for i := range launches {
		l := &launches[i]
		if l.Why.Reason != policy.ReasonShortage {
			continue
		}
		if view == s {
			clone := *s
			clone.Nodes = slices.Clone(s.Nodes)
			view = &clone
		}
		m := &s.Markets[l.Markets[0]]
		t := &s.Types[m.Type]
		view.Nodes = append(view.Nodes, policy.Node{
			ID: policy.NodeID(len(view.Nodes)), Name: l.Token, Token: l.Token, Pool: l.Pool, Market: m.ID,
			Phase: policy.NodeLaunching, Launched: s.Now, Allocatable: t.Allocatable, VolumesMax: t.VolumesMax,
			GPUResource: t.GPUResource, Taints: s.Pools[l.Pool].Taints,
			Labels: placement.NodeLabels(s.Types, s.Zones, &s.Pools[l.Pool], m),
		})
	}
	return view
}

// join adds the entries of part that concern pools of policy k or no pool at all.
func (r *router) join(plan, part *policy.Plan, s *policy.Snapshot, k int) {
	own := func(p policy.PoolID) bool { return p == policy.None || r.index(&s.Pools[p]) == k }
	for _, x := range part.Steers {
		if own(x.Pool) {
			plan.Steers = append(plan.Steers, x)
		}
	}
	for _, x := range part.Launches {
		if own(x.Pool) {
			plan.Launches = append(plan.Launches, x)
		}
	}
	for _, x := range part.Drains {
		if own(s.Nodes[x.Node].Pool) {
			plan.Drains = append(plan.Drains, x)
		}
	}
	for _, x := range part.Holds {
		if own(x.Pool) {
			plan.Holds = append(plan.Holds, x)
		}
	}
	for _, x := range part.DeletionCosts {
		if own(s.Nodes[x.Node].Pool) {
			plan.DeletionCosts = append(plan.DeletionCosts, x)
		}
	}
	plan.Pauses = append(plan.Pauses, part.Pauses...)
	plan.Evicts = append(plan.Evicts, part.Evicts...)
	plan.Gates = append(plan.Gates, part.Gates...)
	if plan.Wake == 0 || part.Wake < plan.Wake {
		plan.Wake = part.Wake
	}
}
