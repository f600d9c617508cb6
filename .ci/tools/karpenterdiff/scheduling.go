package main

import "fmt"

// runsMax is how often Karpenter is asked: it takes any of equal domains, by the order of
// Go's maps, and Spotter is right where it does what Karpenter did once.
const runsMax = 16

// A verdict is what came of one state.
type verdict struct {
	difference string // empty where the two are equal
	runs       int    // of Karpenter
	ties       int
	pods       int
	cost       int64 // of Karpenter's claims, per hour
	more       int64 // what Spotter's cost more
	ours       *Outcome
	theirs     *Outcome
}

// compareScheduling has both place the pods of s.
func compareScheduling(s *State) (verdict, error) {
	c, err := newCluster(s)
	if err != nil {
		return verdict{}, fmt.Errorf("state %d: %w", s.Seed, err)
	}
	var x verdict
	for x.runs < runsMax {
		theirs, batch, err := c.schedule()
		if err != nil {
			return verdict{}, fmt.Errorf("state %d: %w", s.Seed, err)
		}
		x.runs++
		for way := range uint64(waysMax) {
			ours := newView(s, batch).schedule(batch, guide{o: theirs, way: way})
			x.theirs, x.ours, x.pods, x.ties = theirs, ours, len(batch), ours.Ties
			x.cost, x.more = theirs.cost(), ours.cost()-theirs.cost()
			if ours.untied {
				x.difference, x.ties = "domains taken for equal", 0 // no draw excuses it
				return x, nil
			}
			if x.difference = differs(theirs, ours); x.difference == "" {
				return x, nil
			}
			if ours.Ties == 0 {
				break // there is but one way
			}
		}
	}
	return x, nil
}
