package live

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// shadowMax is the maximum number of stored moves of one pool. Further moves are not counted, so
// that the simulated savings may be too low, but never too high.
const shadowMax = 5000

// A shadow contains the moves that would have been made in a pool that may not be changed. The same
// move is planned again at every step, since it is not carried out. It appears here once, from when
// it was first planned until its node is gone, and its savings accrue per hour, not per plan.
type shadow struct {
	// Moves are ordered by node.
	Moves []shadowMove `json:"moves,omitempty"`

	// Saved is the savings of the moves up to At.
	Saved policy.Money `json:"saved,omitempty"`
	At    policy.Time  `json:"at,omitempty"`

	// rest is the fraction of a micro-dollar that is not in Saved, in micro-dollars × ms per hour.
	// It is lost in a restart.
	rest int64
}

// A shadowMove is a node that would have been moved, since when, and the savings per hour.
type shadowMove struct {
	Node   string       `json:"node"`
	Since  policy.Time  `json:"since"`
	Saving policy.Money `json:"saving"`
}

// book adds a move, or updates its savings. It reports whether the move is new.
func (b *shadow) book(node string, saving policy.Money, now policy.Time) bool {
	i, found := slices.BinarySearchFunc(b.Moves, node, func(m shadowMove,
		name string) int {
		return cmp.Compare(m.Node, name)
	})
	if found {
		b.Moves[i].Saving = saving
		return false
	}
	if len(b.Moves) >= shadowMax {
		return false
	}
	b.Moves = slices.Insert(b.Moves, i, shadowMove{Node: node, Since: now, Saving: saving})
	return true
}

// observe adds the savings of the moves until now and drops the moves whose node is gone: its
// replacement has its own price.
func (b *shadow) observe(live map[string]*policy.Node, now policy.Time) {
	const perHour = int64(time.Hour / time.Millisecond)
	if b.At != 0 && now > b.At {
		sum := b.rest + int64(b.PerHour())*int64(now-max(b.At, now.Add(-gapMax)))
		b.Saved += policy.Money(sum / perHour)
		b.rest = sum % perHour
	}
	b.At = now
	b.Moves = slices.DeleteFunc(b.Moves, func(m shadowMove) bool { return live[m.Node] == nil })
}

// PerHour returns the total savings of the moves per hour.
func (b *shadow) PerHour() policy.Money {
	var sum policy.Money
	for i := range b.Moves {
		sum += b.Moves[i].Saving
	}
	return sum
}

// saving returns the savings of a voluntary drain per hour. If the same plan launches the
// replacement and the drain does not contain its price, the price of the launch counts.
func saving(s *policy.Snapshot, p *policy.Plan, d *policy.Drain) policy.Money {
	after := d.Why.After
	if after == 0 {
		for i := range p.Launches {
			if l := &p.Launches[i]; l.Replaces == d.Node && len(l.Markets) > 0 {
				after = s.Markets[l.Markets[0]].Charge()
				break
			}
		}
	}
	return d.Why.Before - after
}

// chosen reports whether a drain is voluntary: replacing a node that the provider reclaims saves
// nothing.
func chosen(s *policy.Snapshot, d *policy.Drain) bool {
	return s.Nodes[d.Node].ReclaimAt == 0 && d.Why.Reason != policy.ReasonNotice && d.Why.Reason != policy.ReasonRebalance
}
