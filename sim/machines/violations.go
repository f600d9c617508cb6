package machines

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/figures"
)

// What a run may do without violating a manifest. A pool that is less than one of its nodes away
// from a share is left alone by all policies, so that it settles; nodes take time to start, and
// pods to move; and capacity that the provider refuses cannot be bought.
const (
	// violatedPart is the part of the window from which on a bound is not kept.
	violatedPart = 0.05

	// refusedGrace is how long after a launch was refused a share below its bound is
	// the provider's doing.
	refusedGrace = 6 * time.Hour
)

// A kept tracks what a pool holds against the bounds of its manifest, over the metered window.
type kept struct {
	bounds policy.ShareRange
	limits policy.Resources
	forced bool // the pool may not fall back to on-demand

	since             policy.Time
	nodes, size, spot int64       // of initialized nodes, sizes as the share counts them
	over              bool        // more is held than the limits
	refused           policy.Time // when a launch was refused last

	// The time above and below the bounds of the share, and above the limits.
	aboveMS, belowMS, overMS int64

	fellBack bool
}

// hold counts d nodes of a size, 1 or -1.
func (k *kept) hold(now policy.Time, window billing.Span, size, d int64, spot bool) {
	k.advance(now, window)
	k.nodes += d
	k.size += d * size
	if spot {
		k.spot += d * size
	}
}

// use notes what the pool holds of its limits, nodes on their way counted.
func (k *kept) use(now policy.Time, window billing.Span, used policy.Resources) {
	if over := !Allowed(k.limits, used, policy.Resources{}); over != k.over {
		k.advance(now, window)
		k.over = over
	}
}

// refuse notes that the pool was refused a launch.
func (k *kept) refuse(now policy.Time, window billing.Span) {
	k.advance(now, window)
	k.refused = now
}

// advance completes the times up to now, within the window.
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

// broken says in sentences what of the manifest of pool name was not kept in a window of
// that length. They are the same in every run that did not keep it.
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

// noteFallback notes that a node was bought on demand although the pool could buy only Spot and was
// refused it a moment ago.
func (pl *Pools) noteFallback(pool policy.PoolID, m policy.MarketID) {
	k := &pl.bounds[pool]
	if k.forced && pl.State[pool].Share >= 1 && pl.Scenario.Markets[m].Capacity == policy.OnDemand && pl.Metered() &&
		k.refused != 0 && pl.Clock.Now.Sub(k.refused) <= pl.Delays.Unavailable {
		k.fellBack = true
	}
}

// FillViolations completes the result with what of the manifests was not kept.
func (pl *Pools) FillViolations() {
	for i := range pl.bounds {
		k := &pl.bounds[i]
		k.advance(pl.Window.To, pl.Window)
		pl.Result.Violations = append(pl.Result.Violations, k.broken(pl.Scenario.Pools[i].Name,
			int64(pl.Window.To-pl.Window.From))...)
	}
}
