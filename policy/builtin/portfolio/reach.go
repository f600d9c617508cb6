package portfolio

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// reach returns the CPU that the pods ask for that may stand in the pool, wherever they
// stand, in thousandths of a core. What a service loses with a node depends on the number
// of its pods and not on how many pools its cluster is divided into.
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
	for i := range d.pool.Taints {
		if x := &d.pool.Taints[i]; x.Effect != policy.PreferNoSchedule && !placement.Tolerates(t.Tolerations, x) {
			return false
		}
	}
	return slices.ContainsFunc(d.pool.Markets, func(id policy.MarketID) bool { return d.holds(id, t) })
}
