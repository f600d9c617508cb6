package asg

import (
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/asg/fake"
)

var rivalSeed = flag.Uint64("rival.seed", 0, "play this seed alone against the Cluster Autoscaler; 0 plays all")

// The Cluster Autoscaler and Spotter work on the same groups at the same time, and the Cluster
// Autoscaler may act between any two calls of Spotter. No node with pods is terminated, sizes
// settle, and in the end the groups hold what the pods need.
func TestRule16Rival(t *testing.T) {
	first, last := uint64(1), uint64(rivalSeeds)
	if *rivalSeed > 0 {
		first, last = *rivalSeed, *rivalSeed
	} else if testing.Short() {
		last = 50
	}
	var swaps, done atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		const shards = 4
		for shard := range uint64(shards) {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for seed := first + shard; seed <= last; seed += shards {
					c := newContest(t, seed)
					c.play()
					swaps.Add(int64(c.swaps))
					done.Add(int64(c.done))
				}
			})
		}
	})
	t.Logf("%d swaps were begun and %d ended well", swaps.Load(), done.Load())
	if first != last && done.Load() < int64(last) {
		t.Errorf("%d seeds ended only %d swaps well: nothing was contested", last, done.Load())
	}
}

func newContest(t *testing.T, seed uint64) *contest {
	spot, fixed := spotGroup(2), fixedGroup(3)
	c := &contest{fixture: newFixtureOn(t, newStore(), spot, fixed), seed: seed, cordoned: map[string]bool{}, removing: map[string]bool{},
		rival: rival{cached: map[string]int{}, idle: map[string]time.Time{}, short: map[string]time.Time{}}}
	c.pods = make([]string, 8+c.chance("pods").IntN(5))
	c.schedule()
	c.cloud.SetFaults(fake.Faults{Seed: seed, Throttle: .03, Internal: .02, Lost: .02, Busy: .05, Stale: .1, Lag: 3 * time.Second})
	c.cloud.SetBefore(func(call fake.Call) error {
		if !c.inRival && c.chance("between").IntN(6) == 0 {
			c.scan()
		}
		return nil
	})
	return c
}

// play lets both at it while the number of pods changes, and then waits for rest.
func (c *contest) play() {
	const tick = 15 * time.Second
	turn := func(mayBegin bool) {
		c.cloud.Advance(tick)
		c.joinNodes(c.join)
		c.check("the group itself")
		c.schedule()
		c.scan()
		c.work(mayBegin)
		c.check("our own call")
		c.schedule()
	}
	for range 14 {
		if c.chance("demand").IntN(8) == 0 {
			c.pods = append(c.pods, "")
		} else if c.chance("demand").IntN(16) == 0 {
			c.pods = c.pods[:len(c.pods)-1]
		}
		turn(true)
	}
	c.cloud.SetFaults(fake.Faults{Seed: c.seed})
	for i := 0; c.swap != nil && i < 100; i++ {
		turn(false)
	}
	sizes, calm := "", 0
	for i := 0; calm < 9 && i < 200; i++ {
		if i%8 == 0 {
			c.must(c.backend.Cleanup(c.ctx(), nil, nil))
		}
		turn(false)
		if now := c.sizes(); now != sizes {
			sizes, calm = now, 0
		} else {
			calm++
		}
	}
	c.rest(sizes, calm)
}

// rest fails the test unless the groups have settled as they should.
func (c *contest) rest(sizes string, calm int) {
	c.t.Helper()
	needed := (len(c.pods) + slots - 1) / slots
	held, spare := 0, 0
	for _, g := range c.groups() {
		held += g.Desired
		spare += g.Min
		if live := len(g.Instances); live != g.Desired {
			c.t.Errorf("%s has %d of %d instances; repeat with -rival.seed=%d", g.Name, live, g.Desired, c.seed)
		}
	}
	if c.pending() > 0 || c.swap != nil || calm < 9 || held < needed || held > needed+spare {
		c.t.Errorf("%d pods are pending, swap %v, calm for %d turns, %s for %d pods; repeat with -rival.seed=%d",
			c.pending(), c.swap, calm, sizes, len(c.pods), c.seed)
	}
	if left := c.left(); len(left) > 0 {
		c.t.Errorf("left behind: %s; repeat with -rival.seed=%d", strings.Join(left, ", "), c.seed)
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
}
