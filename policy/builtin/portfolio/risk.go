package portfolio

import (
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A service is what the loss of many nodes at once does to a workload of the
// pool.
type service struct {
	pods    float64 // that stand in the pool
	slack   float64 // of them that may be missing
	even    bool    // its pods are spread over the capacity types by their own wish
	value   float64 // of a pod, dollars an hour
	minutes float64 // until a lost pod serves again
	penalty float64 // dollars for each pod below what is required
	rate    float64 // dollars an hour of an outage, instead
}

// loss returns what it costs in dollars when k pods go at once.
func (v *service) loss(k float64) float64 {
	cost := float64(float64(v.value*k)*v.minutes) / 30
	short := k - v.slack
	if short <= 0 {
		return cost
	}
	if v.rate > 0 {
		return cost + float64(v.rate*v.minutes)*min(1, short)/60
	}
	return cost + float64(v.penalty*short)
}

// readServices collects the services that have pods in the pool.
func (d *planState) readServices() {
	s := d.s
	pods := slices.Clone(d.pods)
	d.anchors = make([]bool, len(s.Templates))
	for i := range s.Templates {
		d.anchors[i] = d.needsAll(&s.Templates[i])
	}
	for i := range s.Nodes {
		if !d.fixed(&s.Nodes[i]) {
			continue
		}
		for _, p := range d.e.pods.on(policy.NodeID(i)) {
			if d.anchors[p.template] && p.phase != policy.PodTerminating {
				pods[p.template]--
			}
		}
	}
	d.services = d.services[:0]
	d.serviceOf = make([]int32, len(s.Templates))
	for i := range s.Templates {
		t := &s.Templates[i]
		d.serviceOf[i] = policy.None
		if t.DaemonSet || t.Workload < 0 || pods[i] == 0 || s.Workloads[t.Workload].Kind == policy.KindJob {
			continue
		}
		w := &s.Workloads[t.Workload]
		wanted := max(w.Replicas, 1)
		d.serviceOf[i] = int32(len(d.services))
		d.services = append(d.services, service{
			pods: float64(pods[i]), slack: float64(wanted - workload.Required(s, t, wanted)),
			even:  slices.ContainsFunc(t.Spread, func(x policy.Spread) bool { return x.TopologyKey == capacityLabel }),
			value: d.e.values[i], minutes: d.e.minutes[i],
			penalty: float64(d.e.values[i] * penaltyHours(t)), rate: t.OutageCost.Float(),
		})
	}
}

// fixed reports whether n is a node of the pool that is not spot. Pods there of a
// service that can spare none are not moved to spot, and so nothing takes them.
func (d *planState) fixed(n *policy.Node) bool {
	return n.Pool == d.pool.ID && n.Live() && n.Market >= 0 && d.s.Markets[n.Market].Capacity != policy.Spot
}

// needsAll reports whether t is of a service that can spare no pod.
func (d *planState) needsAll(t *policy.Template) bool {
	if t.Workload < 0 {
		return false
	}
	w := &d.s.Workloads[t.Workload]
	return w.Kind != policy.KindJob && workload.Required(d.s, t, w.Replicas) >= w.Replicas
}

// capacityLabel is the label by which pods are spread over spot and on demand.
const capacityLabel = "karpenter.sh/capacity-type"

// holds reports whether p counts as one of the pool's.
func (d *planState) holds(p *policy.Pod) bool {
	if p.Phase == policy.PodGone || p.Phase == policy.PodTerminating {
		return false
	}
	at := p.Node
	if at < 0 {
		at = p.Nominated
	}
	return at >= 0 && d.s.Nodes[at].Pool == d.pool.ID || at < 0 && len(d.s.Pools) == 1
}

// shock returns what it costs in dollars when the part q of the pool's pods goes
// at once. Pods that do not wish to be spread may stand there more than evenly, by
// one standard deviation of a random draw.
func (d *planState) shock(q float64) float64 {
	sum := d.shockOfJobs(q)
	for i := range d.services {
		v := &d.services[i]
		k := v.pods * q
		switch {
		case q <= 0:
		case v.even:
			k++ // the skew that a spread is allowed
		default:
			k += math.Sqrt(float64(k * (1 - q)))
		}
		sum += v.loss(min(k, v.pods))
	}
	return sum
}

// nodeLoss returns what the loss of one node costs in dollars for each core that
// is asked for there, in the mean over the pool's nodes: all pods of a node go
// together. On spot no node is given more of a service than it can spare if others
// have room, so that what stands together on demand is no measure.
func (d *planState) nodeLoss() float64 {
	if d.demand.CPU == 0 {
		return 0
	}
	sum := d.jobsAll
	var there []int32 // the services of the pods on a node, ascending
	for i := range d.s.Nodes {
		n := &d.s.Nodes[i]
		if n.Pool != d.pool.ID {
			continue
		}
		there = there[:0]
		fixed := d.fixed(n)
		for _, p := range d.e.pods.on(n.ID) {
			v := d.serviceOf[p.template]
			if v < 0 || p.phase == policy.PodTerminating || fixed && d.anchors[p.template] {
				continue
			}
			there = append(there, v)
			for k := len(there) - 1; k > 0 && there[k-1] > v; k-- {
				there[k-1], there[k] = v, there[k-1]
			}
		}
		for k := 0; k < len(there); {
			v, lost := &d.services[there[k]], 0.0
			for at := there[k]; k < len(there) && there[k] == at; k++ {
				lost++
			}
			if fixed {
				lost = min(lost, max(1, v.slack))
			}
			sum += v.loss(lost)
		}
	}
	return sum / (float64(d.demand.CPU) / 1000)
}

// unlike is how many reclaims the forecast of a market weighs against what the
// pool met in all its markets together: little, since recorded markets differ by
// far more than published bands tell, some hundredfold.
const unlike = 0.02

// readHazard finds the reclaims per node-hour that the pool met in its spot markets
// together. What a market that it hardly knows is foretold to do counts for no less
// where the choice is between spot and on demand: that the others were worse than
// foretold says that this one may be.
func (d *planState) readHazard() {
	hours, least := 0.0, 0.0
	d.met = 0
	for _, id := range d.pool.Markets {
		m := &d.s.Markets[id]
		if m.Capacity != policy.Spot {
			continue
		}
		d.met += m.Experience.Reclaims
		hours += m.Experience.NodeHours
		if h := m.Forecast.Hazard; h > 0 && m.Offered && (least == 0 || h < least) {
			least = h
		}
	}
	d.hazard = 0
	if least > 0 {
		d.hazard = (unlike + d.met) / (unlike/least + hours)
	}
}

const (
	// shockSpan is within how long nodes are lost together: a shortage takes its
	// nodes within minutes. Two spans are looked at, since it may begin late in one.
	shockSpan = 10 * time.Minute

	// shockPart is the least part of the spot nodes that have to go in that time,
	// and shockNodes the least number of them.
	shockPart  = 0.4
	shockNodes = 2

	// shockMemory is in what time a shock counts half. Shortages come in clusters:
	// what happened today says more of tomorrow than the month before.
	shockMemory = 12 * time.Hour

	// shockApart is the least time between two shocks that count as such.
	shockApart = time.Hour
)

// readShocks notes whether many of the pool's spot nodes went at once.
func (d *planState) readShocks() {
	s, x := d.s, &d.memory.Shocks
	if x.Since != 0 && s.Now.Sub(x.Since) < shockSpan {
		return
	}
	nodes := 0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool == d.pool.ID && n.Usable() && n.Market >= 0 && s.Markets[n.Market].Capacity == policy.Spot {
			nodes++
		}
	}
	d.changed = true
	lost := 0.0
	if x.Since != 0 && s.Now.Sub(x.Since) < 3*shockSpan && x.Nodes > 0 {
		lost = min(1, max(0, d.met-x.Reclaims)/float64(x.Nodes))
	}
	part := min(1, lost+x.Lost)
	if part >= shockPart && float64(part*float64(x.Nodes)) >= shockNodes-0.1 {
		d.meetShock(part)
	}
	x.Since, x.Nodes, x.Reclaims, x.Lost = s.Now, nodes, d.met, lost
	if x.Nodes == 0 {
		x.Lost = 0
	}
}

// meetShock counts a loss of part of the spot nodes.
func (d *planState) meetShock(part float64) {
	x, now := &d.memory.Shocks, d.s.Now
	if x.At != 0 && now.Sub(x.At) < shockApart {
		x.Depth = max(x.Depth, part)
		return
	}
	before := float64(x.Count * d.fading(x.At))
	x.Depth = (float64(x.Depth*before) + part) / (before + 1)
	x.Count, x.At = before+1, now
}

// fading returns how much of a shock at t still counts.
func (d *planState) fading(t policy.Time) float64 {
	if t == 0 {
		return 0
	}
	return portable.Decay(d.s.Now.Sub(t), shockMemory)
}

// shockRate returns how many shocks an hour are expected.
func (d *planState) shockRate() float64 {
	x := &d.memory.Shocks
	return float64(x.Count*d.fading(x.At)) * math.Ln2 / shockMemory.Hours()
}
