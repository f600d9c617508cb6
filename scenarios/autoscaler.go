package scenarios

import (
	"cmp"
	"math"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/spotter-dev/spotter/policy"
)

// An autoscaler determines the replicas of a workload from its load. It follows the
// HorizontalPodAutoscaler controller under the assumption that pods are ready at once and share the
// load evenly, so that every policy faces the same demand.
type autoscaler struct {
	min, max int32
	targets  []scaleTarget
	up, down scalingRules
}

// A scaleTarget is one metric: its load over time, in thousandths, and the target load per replica.
type scaleTarget struct {
	load       func(from, start, to policy.Time) []scheduleStep
	perReplica float64
}

// scalingRules limit how fast the number of replicas may change in one direction.
type scalingRules struct {
	window    time.Duration // the stabilisation window
	policies  []autoscalingv2.HPAScalingPolicy
	least     bool // use the policy with the smallest change
	disabled  bool
	tolerance float64
}

// Defaults of Kubernetes (pkg/apis/autoscaling/v2/defaults.go), and the sync period and tolerance
// of its controller.
const (
	scalePeriod       = 15 * time.Second
	scaleDownWindow   = 5 * time.Minute
	defaultTolerance  = 0.1
	defaultPercentMax = 100
	defaultPodsMax    = 4
)

func defaultRules() (up, down scalingRules) {
	percent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: defaultPercentMax,
		PeriodSeconds: 15}
	pods := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: defaultPodsMax, PeriodSeconds: 15}
	up = scalingRules{policies: []autoscalingv2.HPAScalingPolicy{percent, pods}, tolerance: defaultTolerance}
	down = scalingRules{policies: []autoscalingv2.HPAScalingPolicy{percent}, tolerance: defaultTolerance,
		window: scaleDownWindow}
	return up, down
}

// rulesOf returns the scaling rules of a behavior, with defaults where it states none.
func rulesOf(b *autoscalingv2.HorizontalPodAutoscalerBehavior) (up, down scalingRules) {
	up, down = defaultRules()
	if b != nil {
		up.set(b.ScaleUp)
		down.set(b.ScaleDown)
	}
	return up, down
}

func (r *scalingRules) set(from *autoscalingv2.HPAScalingRules) {
	if from == nil {
		return
	}
	if s := from.StabilizationWindowSeconds; s != nil {
		r.window = time.Duration(*s) * time.Second
	}
	if s := from.SelectPolicy; s != nil {
		r.least, r.disabled = *s == autoscalingv2.MinChangePolicySelect, *s == autoscalingv2.DisabledPolicySelect
	}
	if len(from.Policies) > 0 {
		r.policies = from.Policies
	}
	if from.Tolerance != nil {
		r.tolerance = from.Tolerance.AsApproximateFloat64()
	}
}

// bounded returns n clamped to [min, max].
func (a *autoscaler) bounded(n int32) int32 { return min(max(n, a.min), a.max) }

// steps returns the replicas between two instants, as the controller sets them at every sync.
func (a *autoscaler) steps(from, start, to policy.Time) []scheduleStep {
	loads := make([][]scheduleStep, len(a.targets))
	var changes []policy.Time
	for i := range a.targets {
		loads[i] = a.targets[i].load(from, start, to)
		for _, s := range loads[i] {
			changes = append(changes, s.at)
		}
	}
	slices.Sort(changes)
	s := scaling{autoscaler: a, replicas: a.min}
	s.replicas = a.bounded(s.wanted(loads, from))
	steps := []scheduleStep{{from, int64(s.replicas)}}
	for now := from; now < to; {
		settled := s.sync(now, s.recommended(loads, now))
		steps = change(steps, now, to, int64(s.replicas))
		if now = now.Add(scalePeriod); !settled {
			continue
		}
		next, _ := slices.BinarySearch(changes, now)
		if next == len(changes) {
			break
		}
		now = s.skip(now, changes[next])
	}
	return steps
}

// skip returns the time of the first sync at or after instant. Syncs are scalePeriod apart,
// starting at now. It records the last recommendation for the skipped syncs.
func (s *scaling) skip(now, instant policy.Time) policy.Time {
	const period = policy.Time(scalePeriod / time.Millisecond)
	if instant <= now {
		return now
	}
	now += (instant - now + period - 1) / period * period
	last := s.recommendations[len(s.recommendations)-1].value
	s.recommendations = append(s.recommendations, scheduleStep{now - period, last})
	return now
}

// scaling is the state of an autoscaler during steps.
type scaling struct {
	*autoscaler
	replicas        int32
	recommendations []scheduleStep // within the longer stabilisation window
	events          []scheduleStep // changes within scaleEventsMax
}

// wanted returns the replicas that the loads at an instant require.
func (s *scaling) wanted(loads [][]scheduleStep, at policy.Time) int32 {
	most := 0.0
	for i := range loads {
		most = max(most, float64(valueAt(loads[i], at))/(1000*s.targets[i].perReplica))
	}
	return int32(min(math.Ceil(most), podsMax))
}

// recommended returns the replicas that the loads at an instant require, but keeps the current
// number where the change is within the tolerance.
func (s *scaling) recommended(loads [][]scheduleStep, at policy.Time) int32 {
	most := int32(0)
	for i := range loads {
		want := float64(valueAt(loads[i], at)) / (1000 * s.targets[i].perReplica)
		n := int32(min(math.Ceil(want), podsMax))
		change := want/float64(max(s.replicas, 1)) - 1
		if change >= 0 && change <= s.up.tolerance || change < 0 && -change <= s.down.tolerance {
			n = s.replicas
		}
		most = max(most, n)
	}
	return most
}

// sync changes the replicas according to a recommendation, as the controller does. Settled reports
// whether they remain unchanged until the load changes.
func (s *scaling) sync(now policy.Time, recommended int32) (settled bool) {
	s.recommendations = append(s.since(s.recommendations, now.Add(-max(s.up.window, s.down.window))),
		scheduleStep{now, int64(recommended)})
	atLeast, atMost := recommended, recommended
	for _, r := range s.recommendations {
		if r.at > now.Add(-s.up.window) {
			atLeast = min(atLeast, int32(r.value))
		}
		if r.at > now.Add(-s.down.window) {
			atMost = max(atMost, int32(r.value))
		}
	}
	stable := min(max(s.replicas, atLeast), atMost)
	next := s.bounded(s.limited(now, stable))
	if next != s.replicas {
		s.events = append(s.since(s.events, now.Add(-scaleEventsMax)), scheduleStep{now, int64(next - s.replicas)})
		s.replicas = next
		return false
	}
	pending := slices.ContainsFunc(s.recommendations,
		func(r scheduleStep) bool { return s.bounded(int32(r.value)) != next })
	return !pending
}

// scaleEventsMax is the maximum period of a scaling policy.
const scaleEventsMax = 30 * time.Minute

// since removes the steps at or before an instant.
func (s *scaling) since(steps []scheduleStep, after policy.Time) []scheduleStep {
	return slices.DeleteFunc(steps, func(x scheduleStep) bool { return x.at <= after })
}

// limited returns n, or the nearest number that the scaling policies allow at now.
func (s *scaling) limited(now policy.Time, n int32) int32 {
	rules, sign := &s.up, int32(1)
	switch {
	case n == s.replicas:
		return n
	case n < s.replicas:
		rules, sign = &s.down, -1
	}
	if rules.disabled {
		return s.replicas
	}
	var limits []int32
	for _, p := range rules.policies {
		limits = append(limits, s.limit(now, p, sign))
	}
	limit := slices.Max(limits)
	if rules.least == (sign > 0) {
		limit = slices.Min(limits)
	}
	if sign > 0 {
		return min(n, max(limit, s.replicas))
	}
	return max(n, min(limit, s.replicas))
}

// limit returns the bound that one scaling policy sets on the replicas, relative to their number at
// the start of its period. Sign is 1 for scaling up and -1 for scaling down.
func (s *scaling) limit(now policy.Time, p autoscalingv2.HPAScalingPolicy, sign int32) int32 {
	began := int64(s.replicas)
	for _, e := range s.events {
		if e.at > now.Add(-time.Duration(p.PeriodSeconds)*time.Second) {
			began -= e.value
		}
	}
	if p.Type == autoscalingv2.PodsScalingPolicy {
		return int32(began) + sign*p.Value
	}
	share := float64(began) * (1 + float64(sign*p.Value)/100)
	if sign > 0 {
		return int32(min(math.Ceil(share), podsMax))
	}
	return int32(share)
}

// valueAt returns the value that applies at an instant.
func valueAt(steps []scheduleStep, at policy.Time) int64 {
	i, found := slices.BinarySearchFunc(steps, at, func(s scheduleStep,
		at policy.Time) int {
		return cmp.Compare(s.at, at)
	})
	if found {
		return steps[i].value
	}
	return steps[max(i-1, 0)].value
}
