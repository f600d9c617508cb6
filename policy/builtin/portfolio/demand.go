package portfolio

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A demand is the requests of the pods of a pool, excluding DaemonSets. total is the sum of the
// requests of the pods counted in pods.
type demand struct {
	*poolContext
	perPod *podLosses

	total policy.Resources

	// daemons is the mean of the requests of DaemonSet pods per node.
	daemons policy.Resources

	// pods is the number of the pool's pods by template.
	pods []int32

	// asked reports, by template, whether the pool has pods of it or pods of it wait for a node of
	// any pool.
	asked []bool

	// fixed reports, by template, whether its pods in the pool select no Spot node of the pool.
	// some reports whether there are any such templates.
	fixed []bool
	some  bool

	// lossAll is the cost of the sudden loss of every pod, one node at a time, in dollars.
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

// fixedOn returns the total requests of the pods of node id that fit no Spot node, and reports
// whether these are all of its pods.
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

// readPods counts the pods of the pool, and sums the costs of their losses.
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
			d.lossAll += d.perPod.redone(s, &s.Pods[id]) // depends on how long the pod has run
		}
	}
}

// lossPerCore returns the cost of losing a node per core, in dollars: lossAll divided by the
// requested cores.
func (d *demand) lossPerCore() float64 {
	if d.total.CPU == 0 {
		return 0
	}
	return d.lossAll / (float64(d.total.CPU) / 1000)
}

// freeCapacity returns what a node of type t leaves for pods other than DaemonSet pods.
func (d *demand) freeCapacity(t policy.TypeID) policy.Resources {
	return d.s.Types[t].Allocatable.Minus(d.daemons)
}

// holds reports whether a node of market id has the capacity for a pod of t, and the labels that
// the pod selects.
func (d *demand) holds(id policy.MarketID, t *policy.Template) bool {
	if t.Requests.LargestShare(d.freeCapacity(d.s.Markets[id].Type)) > 1 {
		return false
	}
	return len(t.NodeSelector)+len(t.Affinity) == 0 || placement.Selected(t, d.e.labelsOf(d.s, d.pool, id))
}

// orIdle returns the total demand, or a substitute for a pool without pods.
func (d *demand) orIdle() policy.Resources {
	if d.total == (policy.Resources{}) {
		return idleDemand
	}
	return d.total
}

// idleDemand is the assumed demand of a pool without pods, and idlePod one of its pods.
var (
	idleDemand = policy.Resources{CPU: 1000, Memory: 2 << 30, Pods: 1}
	idlePod    = policy.Template{Requests: idleDemand}
)

// reach returns the CPU requests of all pods that may run in the pool, wherever they run, in
// thousandths of a core. The loss of a service with a node depends on the number of its pods and
// not on the number of pools of its cluster.
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
	// peakMemory is how long a peak counts. For a service that grows each morning, the first pods
	// already get nodes of the day's size instead of small ones that are replaced later.
	peakMemory = 24 * time.Hour

	// peakAgain is how often a lasting peak is recorded again, so that the memory seldom changes.
	peakAgain = time.Hour
)

// readPeak records the reach if it is the maximum of the last day.
func (d *demand) readPeak() {
	cpu, x := d.reach(), &d.memory.Peak
	age := d.s.Now.Sub(x.At)
	if cpu > x.CPU || age >= peakMemory || cpu == x.CPU && age >= peakAgain {
		*x, d.changed = policy.Peak{CPU: cpu, At: d.s.Now}, true
	}
}

// admits reports whether pods of t tolerate the pool's taints, and some market of the pool has the
// capacity for them and the labels that they select.
func (d *demand) admits(t *policy.Template) bool {
	return policy.TolerateAll(t.Tolerations, d.pool.Taints) &&
		slices.ContainsFunc(d.pool.Markets, func(id policy.MarketID) bool { return d.holds(id, t) })
}
