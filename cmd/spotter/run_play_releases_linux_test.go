package main

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/play/watch"
)

// secondUser is the account of the second release.
const secondUser = "spotter-second"

// started returns the replicas that were started and are started again.
func (p *play) started() []*member {
	return slices.DeleteFunc(slices.Clone(p.members), func(m *member) bool { return m.run == nil || m.down })
}

// releases returns the replicas of the first release and those of the second.
func (p *play) releases() (first, second []*member) {
	last := len(p.members) - 1
	return p.members[:last], p.members[last:]
}

// compete starts a second release. Once that leads, the first ends until the second has taken
// its pools, or the second ends.
func (p *play) compete(t *testing.T) {
	t.Helper()
	first, second := p.releases()
	switch {
	case second[0].down:
		second[0].down = false
	case p.rng.IntN(3) == 0:
		p.handOver(t, second, first)
	default:
		p.handOver(t, first, second)
		for _, m := range first {
			m.down = false
		}
	}
}

// handOver ends a release if the other leads, which must take all pools then.
func (p *play) handOver(t *testing.T, from, to []*member) {
	t.Helper()
	for _, m := range to {
		m.heal()
	}
	// One that was cut off for too long ends within this time, and any other renews its lease.
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		p.keep(t)
	}
	if p.leading(t, to) != nil {
		return
	}
	by := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[p.rng.IntN(2)]
	for _, m := range from {
		if m.down = true; m.runs() {
			_ = m.run.Cmd.Process.Signal(by)
		}
	}
	p.within(t, patience, "the replicas have ended", func() error {
		if slices.ContainsFunc(from, (*member).runs) {
			return errors.New("one runs")
		}
		return nil
	})
	t.Logf("the release of %s ended by %v", from[0].namespace, by)
	p.watcher.order(t, watch.OrderEnded+from[0].namespace)
	begun := time.Now()
	for p.claimed(t, from[0].namespace) && time.Since(begun) < watch.DefaultConfig().Takeover+time.Second {
		p.keep(t)
		time.Sleep(100 * time.Millisecond)
	}
	p.watcher.order(t, watch.OrderTaken)
	p.changed = time.Now()
}

// endSecond ends the second release, once the first leads.
func (p *play) endSecond(t *testing.T) {
	t.Helper()
	first, second := p.releases()
	for !second[0].down {
		p.within(t, patience, "the first release leads", func() error { return p.leading(t, first) })
		p.handOver(t, second, first)
	}
}

// counted waits until the release that acts has written what the budget of the play has used.
func (p *play) counted(t *testing.T) {
	t.Helper()
	p.within(t, patience, "the budget is counted", func() error {
		var b v1alpha1.GPUBudget
		if err := p.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "shop"}, &b); err != nil {
			return err
		}
		if b.Status.CountedAt == nil || b.Status.CountedAt.Time.Before(p.changed) {
			return errors.New("its status is of before")
		}
		return nil
	})
}

// leading returns nil while one of some replicas leads and steps.
func (p *play) leading(t *testing.T, some []*member) error {
	t.Helper()
	err := errors.New("none runs")
	for _, m := range some {
		if !m.runs() || m.down {
			continue
		}
		if err = m.stepping(t.Context(), m.run); err == nil {
			return nil
		}
	}
	return err
}

// claimed reports whether a release has claimed a pool.
func (p *play) claimed(t *testing.T, namespace string) bool {
	t.Helper()
	var pools v1alpha1.CapacityPoolList
	if err := p.client.List(t.Context(), &pools); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(pools.Items, func(x v1alpha1.CapacityPool) bool { return x.Status.Controller == namespace })
}
