package live

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// shadowMax bounds the moves of one pool that are remembered; more are counted no
// further, so that what a pool would have saved is then too low and never too high.
const shadowMax = 5000

// A shadow is the book of moves that would have been made in a pool that may not be changed. The
// same move is planned again at every step, since it is not carried out. Here it appears once, from
// when it was first planned until its node is gone, and saves by the hour and not by the plan.
type shadow struct {
	// Moves are ascending by node.
	Moves []shadowMove `json:"moves,omitempty"`

	// Saved is what the moves would have saved up to At.
	Saved policy.Money `json:"saved,omitempty"`
	At    policy.Time  `json:"at,omitempty"`

	// rest is what of Saved is below a micro-dollar, in micro-dollars × ms per
	// hour. It is not kept over a restart.
	rest int64
}

// A shadowMove is a node that would have gone, since when, and what it would have
// cost less per hour.
type shadowMove struct {
	Node   string       `json:"node"`
	Since  policy.Time  `json:"since"`
	Saving policy.Money `json:"saving"`
}

// book adds a move, or gives it the saving that it now has. It reports whether the
// node was not in the book before.
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

// observe adds what the moves would have saved until now and forgets those whose
// node is gone: what took its place has a price of its own.
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

// PerHour returns what the moves in the book save together.
func (b *shadow) PerHour() policy.Money {
	var sum policy.Money
	for i := range b.Moves {
		sum += b.Moves[i].Saving
	}
	return sum
}

// saving returns what a drain by choice saves per hour. Where its replacement is
// bought by the same plan and the drain itself names no price of it, that of the
// launch counts.
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

// chosen reports whether a drain is one of choice and not of need: nothing is saved
// by leaving a node that the provider takes.
func chosen(s *policy.Snapshot, d *policy.Drain) bool {
	return s.Nodes[d.Node].ReclaimAt == 0 && d.Why.Reason != policy.ReasonNotice && d.Why.Reason != policy.ReasonRebalance
}
