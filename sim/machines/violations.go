package machines

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Tolerances before a run violates a manifest. All policies leave a pool alone whose share is off
// by less than one of its nodes; nodes need time to start, and pods to move; and capacity that the
// provider refuses cannot be bought.
const (
	// violatedPart is the fraction of the window above which the violation of a bound counts.
	violatedPart = 0.05

	// refusedGrace is how long after a refused launch a share below its bound is attributed to the
	// provider.
	refusedGrace = 6 * time.Hour
)

// A kept tracks the capacity of a pool against the bounds of its manifest, over the metered window.
type kept struct {
	bounds policy.ShareRange
	limits policy.Resources
	forced bool // the pool may not fall back to on-demand

	since             policy.Time
	nodes, size, spot int64       // of initialized nodes, in the units of the share
	over              bool        // the limits are exceeded
	refused           policy.Time // time of the last refused launch

	// The time above and below the bounds of the share, and above the limits, in milliseconds.
	aboveMS, belowMS, overMS int64

	fellBack bool
}

// hold adds d nodes of the given size; d is 1 or -1.
func (k *kept) hold(now policy.Time, window billing.Span, size, d int64, spot bool) {
	k.advance(now, window)
	k.nodes += d
	k.size += d * size
	if spot {
		k.spot += d * size
	}
}

// use records the resources that count against the pool's limits, including launching nodes.
func (k *kept) use(now policy.Time, window billing.Span, used policy.Resources) {
	if over := !Allowed(k.limits, used, policy.Resources{}); over != k.over {
		k.advance(now, window)
		k.over = over
	}
}

// refuse records that a launch of the pool was refused.
func (k *kept) refuse(now policy.Time, window billing.Span) {
	k.advance(now, window)
	k.refused = now
}

// advance completes the durations up to now, within the window.
func (k *kept) advance(now policy.Time, window billing.Span) {
	from, to := max(k.since, window.From), min(now, window.To)
	k.since = now
	if to <= from {
		return
	}
	if k.over {
		k.overMS += int64(to - from)
	}
	const rounding = 1e-9
	node := float64(k.size) - rounding
	switch spot := float64(k.spot); {
	case (spot-float64(k.bounds.Max*float64(k.size)))*float64(k.nodes) >= node && k.nodes > 0:
		k.aboveMS += int64(to - from)
	case (float64(k.bounds.Min*float64(k.size))-spot)*float64(k.nodes) >= node && k.nodes > 0:
		if k.refused != 0 {
			from = max(from, k.refused.Add(refusedGrace))
		}
		k.belowMS += max(0, int64(to-from))
	}
}

// broken returns sentences about the violations of the manifest of pool name in a window of length
// milliseconds. They are equal in all runs with the same violations.
func (k *kept) broken(name string, length int64) (out []string) {
	say := func(is bool, format string, args ...any) {
		if is {
			out = append(out, fmt.Sprintf("pool %s ", name)+fmt.Sprintf(format, args...))
		}
	}
	most := int64(violatedPart * float64(length))
	percent := func(share float64) string { return figures.Share(share, figures.Few) }
	above, below := k.aboveMS > most, k.belowMS > most
	if k.bounds.Exact {
		say(above || below ||
			k.aboveMS+k.belowMS > most, "does not hold the %s on Spot that exactRatio sets", percent(k.bounds.Target))
	} else {
		say(above, "holds more on Spot than the %s that spotShare.max allows", percent(k.bounds.Max))
		say(below, "holds less on Spot than the %s that spotShare.min requires", percent(k.bounds.Min))
	}
	say(k.overMS > most, "holds more than its limits allow")
	say(k.fellBack, "buys on demand in place of Spot that was refused, which onDemandFallback forbids")
	return out
}

// noteFallback records that a node was launched on demand although the pool must buy only Spot and
// a launch was refused a moment ago.
func (pl *Pools) noteFallback(pool policy.PoolID, m policy.MarketID) {
	k := &pl.bounds[pool]
	if k.forced && pl.State[pool].Share >= 1 && pl.Scenario.Markets[m].Capacity == policy.OnDemand && pl.Metered() &&
		k.refused != 0 && pl.Clock.Now.Sub(k.refused) <= pl.Delays.Unavailable {
		k.fellBack = true
	}
}

// FillViolations adds the violations of manifests to the result.
func (pl *Pools) FillViolations() {
	for i := range pl.bounds {
		k := &pl.bounds[i]
		k.advance(pl.Window.To, pl.Window)
		pl.Result.Violations = append(pl.Result.Violations, k.broken(pl.Scenario.Pools[i].Name,
			int64(pl.Window.To-pl.Window.From))...)
	}
}
