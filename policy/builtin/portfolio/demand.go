package portfolio

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A demand is what the pods of a pool request, excluding DaemonSets. total is the sum of the
// requests of the pods counted in pods.
type demand struct {
	*poolContext
	perPod *podLosses

	total policy.Resources

	// daemons is what the pods of DaemonSets request on a node, on average.
	daemons policy.Resources

	// pods counts those of the pool by template.
	pods []int32

	// asked tells the templates of pods of the pool, and of those that wait for a node of
	// any pool.
	asked []bool

	// fixed tells the templates of pods of the pool that its Spot nodes cannot hold, by what they
	// select; some is whether there are any.
	fixed []bool
	some  bool

	// lossAll is what the sudden loss of every one of them would cost, in dollars.
	lossAll float64
}

// readDemand sums the requests of the pool's pods.
func readDemand(x *poolContext, perPod *podLosses) *demand {
	d, s := &demand{poolContext: x, perPod: perPod}, x.s
	d.readPods()
	nodes := d.e.pods.usable[1+d.pool.ID]
	d.daemons = d.e.pods.daemonsThere[1+d.pool.ID]
	d.asked = make([]bool, len(s.Templates))
	for _, id := range d.e.pods.pending {
		t := s.Pods[id].Template
		d.asked[t] = !s.Templates[t].DaemonSet
	}
	for i := range s.Templates {
		r := &s.Templates[i].Requests
		d.asked[i] = d.asked[i] || d.pods[i] > 0
		d.total = d.total.Plus(r.Scale(int64(d.pods[i])))
	}
	d.readFixed()
	if nodes > 0 {
		x := &d.daemons
		*x = policy.Resources{CPU: x.CPU / nodes, Memory: x.Memory / nodes, Storage: x.Storage / nodes, GPU: x.GPU / nodes}
	}
	d.readPeak()
	return d
}

// readFixed finds the templates whose pods select no Spot market of the pool.
func (d *demand) readFixed() {
	d.fixed = make([]bool, len(d.s.Templates))
	for i := range d.s.Templates {
		t := &d.s.Templates[i]
		if len(t.NodeSelector)+len(t.Affinity) == 0 || d.pods[i] == 0 {
			continue
		}
		d.fixed[i] = !slices.ContainsFunc(d.pool.Markets, func(id policy.MarketID) bool {
			return d.s.Markets[id].Capacity == policy.Spot && placement.Selected(t, d.e.labelsOf(d.s, d.pool, id))
		})
		d.some = d.some || d.fixed[i]
	}
}

// fixedOn returns what the pods of node id request that no Spot node holds, and whether these are
// all of its pods.
func (d *demand) fixedOn(id policy.NodeID) (sum policy.Resources, all bool) {
	if !d.some {
		return sum, false
	}
	pods := d.e.pods.on(id)
	all = len(pods) > 0
	for _, p := range pods {
		if d.fixed[p.template] {
			sum = sum.Plus(d.e.pods.needs[p.template].sum)
		} else {
			all = false
		}
	}
	return sum, all
}

// readPods counts the pods of the pool, and sums what their losses cost.
func (d *demand) readPods() {
	s, index := d.s, &d.e.pods
	d.pods = slices.Clone(standingIn(index, index.standing, d.pool.ID))
	alone := len(s.Pools) == 1
	if alone {
		for t, n := range standingIn(index, index.standing, policy.None) {
			d.pods[t] += n
		}
	}
	jobs := false
	for t, n := range d.pods {
		d.lossAll += float64(float64(n) * d.perPod.each[t])
		jobs = jobs || n > 0 && ofJob(s, &s.Templates[t])
	}
	for id := 0; jobs && id < len(index.cells); id++ {
		if x := &index.all[id]; index.cells[id] >= 0 && ofJob(s, &s.Templates[x.template]) &&
			(x.at < 0 && alone || x.at >= 0 && s.Nodes[x.at].Pool == d.pool.ID) {
			d.lossAll += d.perPod.redone(s, &s.Pods[id]) // depends on how long it has run
		}
	}
}

// lossPerCore returns what the loss of a node costs in dollars for each of its
// cores: what the loss of every pod of the pool would cost, one node at a time.
func (d *demand) lossPerCore() float64 {
	if d.total.CPU == 0 {
		return 0
	}
	return d.lossAll / (float64(d.total.CPU) / 1000)
}

// freeCapacity returns what a node of type t leaves to pods other than those of DaemonSets.
func (d *demand) freeCapacity(t policy.TypeID) policy.Resources {
	return d.s.Types[t].Allocatable.Minus(d.daemons)
}

// holds reports whether a node of market id has the size for a pod of t, and the labels that
// it selects.
func (d *demand) holds(id policy.MarketID, t *policy.Template) bool {
	if t.Requests.LargestShare(d.freeCapacity(d.s.Markets[id].Type)) > 1 {
		return false
	}
	return len(t.NodeSelector)+len(t.Affinity) == 0 || placement.Selected(t, d.e.labelsOf(d.s, d.pool, id))
}

// orIdle returns the demand, or a substitute in a pool without pods.
func (d *demand) orIdle() policy.Resources {
	if d.total == (policy.Resources{}) {
		return idleDemand
	}
	return d.total
}

// idleDemand is used as the demand of a pool without pods, and idlePod as one of its pods.
var (
	idleDemand = policy.Resources{CPU: 1000, Memory: 2 << 30, Pods: 1}
	idlePod    = policy.Template{Requests: idleDemand}
)

// reach returns the CPU that pods that may run in the pool request, wherever they run, in
// thousandths of a core. What a service loses with a node depends on the number of its pods and not
// on how many pools its cluster is divided into.
func (d *demand) reach() int64 {
	if len(d.s.Pools) == 1 {
		return d.total.CPU
	}
	count := make([]int64, len(d.s.Templates))
	for i := range d.e.pods.all {
		if p := &d.e.pods.all[i]; !p.daemon && p.phase != policy.PodGone && p.phase != policy.PodTerminating {
			count[p.template]++
		}
	}
	sum := int64(0)
	for i, n := range count {
		if t := &d.s.Templates[i]; n > 0 && (d.pods[i] > 0 || d.admits(t)) {
			sum += n * t.Requests.CPU
		}
	}
	return sum
}

const (
	// peakMemory is how long a peak counts: a service that grows each morning is bought the
	// nodes of the day for its first pods, and not small ones that are replaced later.
	peakMemory = 24 * time.Hour

	// peakAgain is how often a peak that lasts is noted, so that the memory changes seldom.
	peakAgain = time.Hour
)

// readPeak notes the reach where it is the largest of the last day.
func (d *demand) readPeak() {
	cpu, x := d.reach(), &d.memory.Peak
	age := d.s.Now.Sub(x.At)
	if cpu > x.CPU || age >= peakMemory || cpu == x.CPU && age >= peakAgain {
		*x, d.changed = policy.Peak{CPU: cpu, At: d.s.Now}, true
	}
}

// admits reports whether pods of t tolerate the pool's taints, and one of its markets has the
// size for them and the labels that they select.
func (d *demand) admits(t *policy.Template) bool {
	return policy.TolerateAll(t.Tolerations, d.pool.Taints) &&
		slices.ContainsFunc(d.pool.Markets, func(id policy.MarketID) bool { return d.holds(id, t) })
}
