package karpenter

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A steering is a policy.Steer that refers to markets by name, so that it remains valid after its
// snapshot. It is stored in an annotation of the NodePools, from which it is restored after a
// restart.
type steering struct {
	Share     float64 `json:"share"`
	Exact     bool    `json:"exact,omitempty"`
	Fallback  bool    `json:"fallback,omitempty"`
	EmptyOnly bool    `json:"emptyOnly,omitempty"`

	// Limits are the limits of the steer; a resource that is zero has none.
	Limits policy.Resources `json:"limits,omitzero"`

	// Markets are the names of the markets to buy in, in ascending order. All means all markets of
	// the pool, including those added later.
	Markets []string `json:"markets,omitempty"`
	All     bool     `json:"all,omitempty"`

	// Since is when the steer was first requested.
	Since policy.Time `json:"since"`
}

// steeringOf converts x, with the names of its markets.
func steeringOf(s *policy.Snapshot, x *policy.Steer) steering {
	t := steering{
		Share: x.Share, Exact: x.Exact, Fallback: x.Fallback, EmptyOnly: x.EmptyOnly, Limits: x.Limits,
		All: x.Markets == nil, Since: s.Now,
	}
	for _, m := range x.Markets {
		t.Markets = append(t.Markets, s.Markets[m].Name)
	}
	slices.Sort(t.Markets)
	return t
}

// state returns t as the last steer of its pool.
func (t *steering) state() policy.SteerState {
	return policy.SteerState{Set: true, Share: t.Share, Exact: t.Exact, Fallback: t.Fallback, Since: t.Since}
}

// same reports whether t and u are equal, apart from Since.
func (t *steering) same(u *steering) bool {
	a, b := *t, *u
	a.Since, b.Since = 0, 0
	return a.text() == b.text()
}

func (t *steering) text() string {
	b, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("karpenter: a steering %+v has no text: %v", *t, err)) // the share is NaN
	}
	return string(b)
}

// readSteering decodes the value of the annotation; ok is false if it is missing or invalid.
func readSteering(text string) (t steering, ok bool) {
	if text == "" || json.Unmarshal([]byte(text), &t) != nil || t.Share < 0 || t.Share > 1 {
		return steering{}, false
	}
	return t, true
}

// offers returns the markets of pool that t includes and that have the capacity type, in the order
// of the pool's markets.
func (t *steering) offers(s *policy.Snapshot, pool *policy.Pool, capacity policy.CapacityType) []Offer {
	var all []Offer
	for _, id := range pool.Markets {
		if m := &s.Markets[id]; m.Capacity == capacity && t.names(m.Name) {
			all = append(all, offerOf(s, id))
		}
	}
	return all
}

func offerOf(s *policy.Snapshot, id policy.MarketID) Offer {
	m := &s.Markets[id]
	return Offer{Type: s.Types[m.Type].Name, Zone: kube.ZoneLabel(m.Provider, m.Region, s.Zones[m.Zone])}
}

// names reports whether t includes the market.
func (t *steering) names(market string) bool {
	_, found := slices.BinarySearch(t.Markets, market)
	return t.All || found
}
