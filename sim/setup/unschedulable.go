package setup

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
)

// An Unschedulable is a workload of which no pod fits any node that can be launched. Reason is the
// first constraint that no node meets.
type Unschedulable struct {
	Workload policy.WorkloadID
	Reason   string

	// Pending reports whether its pods stay pending for the whole run, because no node of the
	// initial cluster may run them either. This is the same under every policy, so no outage figure
	// includes it.
	Pending bool
}

// Unschedulable returns the workloads whose pods fit no node that can be launched, in ascending
// order.
func (p *Prepared) Unschedulable() []Unschedulable { return p.unschedulable }

// Warnings returns a line with the reason for each workload whose pods fit no node that can be
// launched.
func (p *Prepared) Warnings() (lines []string) {
	for _, u := range p.unschedulable {
		lines = append(lines, p.describe(u))
	}
	return lines
}

func (p *Prepared) describe(u Unschedulable) string {
	name := p.scenario.Templates[u.Workload].Name
	if !u.Pending {
		return fmt.Sprintf("the pods of %s stay pending once their first nodes are gone, as they fit no node that can be bought: %s",
			name, u.Reason)
	}
	most := int32(0)
	for _, step := range p.scenario.Workloads[u.Workload].Schedule {
		most = max(most, step.Replicas)
	}
	if most > 0 {
		name += fmt.Sprintf(" (%d)", most)
	}
	return fmt.Sprintf("the pods of %s stay pending and do not count in outages and availability, as they fit no node that can be bought: %s",
		name, u.Reason)
}

// pending reports whether no pod of an unschedulable workload runs at the start. Nodes of the
// initial cluster may cost more than the maximum price of their pool.
func (p *Prepared) pending(id policy.WorkloadID, tooExpensive bool) bool {
	if tooExpensive && p.scenario.StartCluster != scenarios.StartEmpty {
		return false
	}
	return !slices.ContainsFunc(p.scenario.Seeds, func(n scenarios.NodeSeed) bool {
		return slices.ContainsFunc(n.Pods, func(x scenarios.PodsOnNode) bool { return x.Workload == id })
	})
}

// NeverRuns reports whether the pods of a workload stay pending for the whole run.
func (p *Prepared) NeverRuns(id policy.WorkloadID) bool {
	return slices.ContainsFunc(p.unschedulable, func(u Unschedulable) bool { return u.Workload == id && u.Pending })
}

// A search reduces offers to those that pods of a template can use, one constraint after the other.
type search struct {
	p     *Prepared
	space *placement.Space
	t     *policy.Template
	left  []placement.Offer

	// tooExpensive reports whether offers meet all constraints except the maximum price of their
	// pools.
	tooExpensive bool
}

// keep drops the offers that do not meet a constraint. If no offer meets it, keep drops none and
// returns false.
func (s *search) keep(meets func(o *placement.Offer) bool) bool {
	kept := slices.DeleteFunc(slices.Clone(s.left), func(o placement.Offer) bool { return !meets(&o) })
	if len(kept) == 0 {
		return false
	}
	s.left = kept
	return true
}

// obstacle returns the reason why no offer fits, or "" if some do. These remain in left.
func (s *search) obstacle() string {
	if len(s.left) == 0 {
		return "no pool sells anything"
	}
	for _, constraint := range []func() string{s.labels, s.domains, s.taints, s.hostPorts, s.resources, s.prices,
		s.companions} {
		if why := constraint(); why != "" {
			return why
		}
	}
	return ""
}

// labels checks the node selector and the required node affinity.
func (s *search) labels() string {
	for _, l := range s.t.NodeSelector {
		r := policy.Requirement{Key: l.Key, Op: policy.OpIn, Values: []string{l.Value}}
		if !s.keep(func(o *placement.Offer) bool { return r.MetByLabels(o.Labels) }) {
			return "its node selector wants " + s.unmet(&r)
		}
	}
	if len(s.t.Affinity) == 0 {
		return ""
	}
	alone := policy.Template{Affinity: s.t.Affinity}
	if s.keep(func(o *placement.Offer) bool { return placement.Selected(&alone, o.Labels) }) {
		return ""
	}
	var terms []string
	for i := range s.t.Affinity {
		terms = append(terms, s.unmetOf(&s.t.Affinity[i]))
	}
	return "its node affinity wants " + strings.Join(terms, "; or ")
}

// unmetOf returns the first requirement of a term that no remaining offer meets.
func (s *search) unmetOf(term *policy.NodeTerm) string {
	one := *s
	for i := range term.Labels {
		if r := &term.Labels[i]; !one.keep(func(o *placement.Offer) bool { return r.MetByLabels(o.Labels) }) {
			return one.unmet(r)
		}
	}
	return "a node by its name"
}

var operators = [...]string{"in", "not in", "to exist", "not to exist", "above", "below"}

// unmet describes a requirement that no offer meets, with the values of the offers and the type
// with the nearest value.
func (s *search) unmet(r *policy.Requirement) string {
	text := strings.TrimSpace(r.Key + " " + operators[r.Op] + " " + strings.Join(r.Values, ", "))
	if r.Op == policy.OpIn && len(r.Values) == 1 {
		text = r.Key + "=" + r.Values[0]
	}
	var values []string
	for i := range s.left {
		if v, there := policy.FindLabel(s.left[i].Labels, r.Key); there && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	if s.open(r.Key) {
		return text + ", which no NodePool allows" + s.nearest(&s.left[0], "")
	}
	if len(values) == 0 {
		return text + ", a label that no node has" + s.nearest(&s.left[0], "")
	}
	distance := func(v string) float64 {
		have, err := strconv.ParseFloat(v, 64)
		want, bad := strconv.ParseFloat(strings.Join(r.Values, ""), 64)
		if err != nil || bad != nil {
			return 0
		}
		return max(have-want, want-have)
	}
	slices.SortStableFunc(values, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)),
			cmp.Compare(a, b))
	})
	at := slices.IndexFunc(s.left, func(o placement.Offer) bool {
		v, there := policy.FindLabel(o.Labels, r.Key)
		return there && v == values[0]
	})
	more := ""
	if len(values) > 5 {
		values, more = values[:5], ", …"
	}
	return text + ", and nodes have " + strings.Join(values, ", ") + more + s.nearest(&s.left[at], "")
}

// open reports whether a NodePool accepts any value of a label and not only those of a list.
func (s *search) open(key string) bool {
	return slices.ContainsFunc(s.left, func(o placement.Offer) bool {
		own := s.p.Own(o.Pool)
		return own != nil && slices.ContainsFunc(own.Choices, func(c scenarios.LabelChoice) bool {
			return c.Open &&
				c.Key == key
		})
	})
}

// nearest describes the type of an offer, and its pool.
func (s *search) nearest(o *placement.Offer, has string) string {
	if has != "" {
		has = " with " + has
	}
	w := s.p.scenario
	return fmt.Sprintf(" (nearest: %s of pool %s%s)", w.Types[w.Markets[o.Market].Type].Name, w.Pools[o.Pool].Name, has)
}

// domains checks that nodes have the labels over which the pod is spread or kept together with
// others.
func (s *search) domains() string {
	var keys []string
	for _, c := range s.t.Spread {
		if !c.Soft {
			keys = append(keys, c.TopologyKey)
		}
	}
	for _, term := range s.t.PodAffinity {
		if term.Weight == 0 {
			keys = append(keys, term.TopologyKey)
		}
	}
	for _, key := range keys {
		r := policy.Requirement{Key: key, Op: policy.OpExists}
		if key != "kubernetes.io/hostname" && !s.keep(func(o *placement.Offer) bool { return r.MetByLabels(o.Labels) }) {
			return "it is spread or kept together by " + key + ", a label that no node has"
		}
	}
	return ""
}

func (s *search) taints() string {
	if s.keep(func(o *placement.Offer) bool { return s.space.Suits(s.t.ID, o.Labels, o.Taints) != placement.Tainted }) {
		return ""
	}
	var keys []string
	for i := range s.left {
		for _, x := range s.left[i].Taints {
			text := strings.TrimSuffix(x.Key+"="+x.Value, "=")
			if x.Effect != policy.PreferNoSchedule && !policy.Tolerates(s.t.Tolerations, &x) && !slices.Contains(keys, text) {
				keys = append(keys, text)
			}
		}
	}
	return "it does not tolerate the taints " + strings.Join(keys, ", ") + s.nearest(&s.left[0], "")
}

func (s *search) hostPorts() string {
	if s.keep(func(o *placement.Offer) bool {
		_, taken := s.space.DaemonPort(s.t.ID, o.Labels, o.Taints)
		return !taken
	}) {
		return ""
	}
	o := &s.left[0]
	daemon, _ := s.space.DaemonPort(s.t.ID, o.Labels, o.Taints)
	var ports []string
	for _, port := range s.t.HostPorts {
		ports = append(ports, strconv.Itoa(int(port.Port)))
	}
	return fmt.Sprintf("the DaemonSet %s has its host port %s on each node%s",
		s.p.scenario.Templates[daemon].Name, strings.Join(ports, " or "), s.nearest(o, ""))
}

// A need is a resource that a pod may request, with the function that formats an amount of it.
type need struct {
	name  string
	of    func(r *policy.Resources) int64
	shown func(n int64) string
}

var needs = []need{
	{"CPU", func(r *policy.Resources) int64 { return r.CPU }, func(n int64) string { return fmt.Sprintf("%dm", n) }},
	{"memory", func(r *policy.Resources) int64 { return r.Memory }, mebibytes},
	{"ephemeral storage", func(r *policy.Resources) int64 { return r.Storage }, mebibytes},
	{"accelerators", func(r *policy.Resources) int64 { return r.GPU },
		func(n int64) string { return strconv.FormatInt(n, 10) }},
	{"pods", func(r *policy.Resources) int64 { return r.Pods }, func(n int64) string { return strconv.FormatInt(n, 10) }},
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// resources checks the requests of the pod against the resources of a node without those of
// DaemonSets.
func (s *search) resources() string {
	free := func(o *placement.Offer) policy.Resources {
		return o.Allocatable.Minus(s.space.Daemons(o.Labels, o.Taints))
	}
	if s.t.Requests.GPU > 0 && !s.keep(func(o *placement.Offer) bool { return o.GPUResource == s.t.GPUResource }) {
		return "no node has " + s.t.GPUResource + s.nearest(&s.left[0], "")
	}
	for _, n := range needs {
		want := n.of(&s.t.Requests)
		has := func(o *placement.Offer) int64 {
			r := free(o)
			return n.of(&r)
		}
		if want == 0 || s.keep(func(o *placement.Offer) bool { return want <= has(o) }) {
			continue
		}
		best := slices.MaxFunc(s.left, func(a, b placement.Offer) int { return cmp.Compare(has(&a), has(&b)) })
		return fmt.Sprintf("it requests %s of %s%s", n.shown(want), n.name, s.nearest(&best, n.shown(max(0, has(&best)))))
	}
	volumes := int32(len(s.t.Volumes))
	if s.keep(func(o *placement.Offer) bool { return o.VolumesMax == 0 || volumes <= o.VolumesMax }) {
		return ""
	}
	best := slices.MaxFunc(s.left, func(a, b placement.Offer) int { return cmp.Compare(a.VolumesMax, b.VolumesMax) })
	return fmt.Sprintf("it has %d volumes%s", volumes, s.nearest(&best, strconv.Itoa(int(best.VolumesMax))))
}

// prices checks that a node is within the maximum price of its pool at some time of the run.
func (s *search) prices() string {
	least := func(o *placement.Offer) policy.Money {
		lowest := policy.NoPrice
		for _, x := range s.p.Charges(o.Market).Price {
			if x != policy.NoPrice && (lowest == policy.NoPrice || x < lowest) {
				lowest = x
			}
		}
		return lowest
	}
	pools := s.p.scenario.Pools
	if s.keep(func(o *placement.Offer) bool {
		return pools[o.Pool].PriceMax == 0 || least(o) <= pools[o.Pool].PriceMax
	}) {
		return ""
	}
	s.tooExpensive = true
	best := slices.MinFunc(s.left, func(a, b placement.Offer) int { return cmp.Compare(least(&a), least(&b)) })
	return fmt.Sprintf("a node costs at least %s an hour, more than maxPrice of the pool, %s%s",
		least(&best).Short(), pools[best.Pool].PriceMax.Short(), s.nearest(&best, ""))
}

// companions checks that some workload matches each required pod affinity term.
func (s *search) companions() string {
	for i := range s.t.PodAffinity {
		term := &s.t.PodAffinity[i]
		matches := func(u policy.Template) bool { return placement.TermMatches(s.t, term, &u) }
		if term.Weight == 0 && !slices.ContainsFunc(s.p.scenario.Templates, matches) {
			return "its pod affinity matches the pods of no workload"
		}
	}
	return ""
}
