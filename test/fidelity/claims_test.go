package fidelity

import (
	"path"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// A claim is what the player knows of a NodeClaim.
type claim struct {
	name, node string // the node's from the launch on
	market     policy.MarketID
	slot       int
	reclaim    weather.Reclaim // At is 0 while none is drawn
	announced  bool
	reason     cause

	// When it was first seen launched, registered and initialized.
	launched, registered, initialized time.Time
}

// A pod is one that the player saw.
type pod struct {
	podLife
	name, node string
}

// seeClaim notes what becomes of a NodeClaim. One that was launched takes the lowest slot
// of its market that is free, and with it the slot's fate.
func (p *player) seeClaim(c *karpv1.NodeClaim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.claims[c.Name]
	if x == nil {
		x = &claim{name: c.Name, market: policy.None}
		p.claims[c.Name] = x
	}
	for _, s := range c.Status.Conditions {
		if s.Status != metav1.ConditionTrue {
			continue
		}
		switch s.Type {
		case karpv1.ConditionTypeRegistered:
			x.registered = firstTime(x.registered)
		case karpv1.ConditionTypeInitialized:
			x.initialized = firstTime(x.initialized)
		case karpv1.ConditionTypeDisruptionReason:
			if x.reason == "" {
				x.reason = byConsolidation
			}
		}
	}
	if x.market != policy.None || c.Status.ProviderID == "" {
		return
	}
	market, known := p.market(c.Labels[corev1.LabelInstanceTypeStable], c.Labels[corev1.LabelTopologyZone],
		c.Labels[karpv1.CapacityTypeLabelKey])
	if !known {
		return
	}
	x.market, x.launched, x.node = market, time.Now(), path.Base(c.Status.ProviderID)
	taken := p.slots[market]
	if x.slot = slices.Index(taken, false); x.slot < 0 {
		x.slot = len(taken)
		taken = append(taken, false)
	}
	taken[x.slot] = true
	p.slots[market] = taken
	if r, ok := p.weather.Reclaim(int(market), x.slot, p.now()); ok {
		x.reclaim = r
	}
}

func firstTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now()
	}
	return t
}

// endClaim frees the slot of a NodeClaim that is gone.
func (p *player) endClaim(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.claims[name]; x != nil && x.market != policy.None {
		p.slots[x.market][x.slot] = false
		x.reclaim = weather.Reclaim{}
	}
}

// seePod notes what becomes of a pod.
func (p *player) seePod(o *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := max(1, time.Since(p.begin).Milliseconds())
	x := p.pods[o.Name]
	if x == nil {
		x = &pod{name: o.Name, podLife: podLife{Workload: o.Labels["app"], Created: at}}
		p.pods[o.Name] = x
	}
	if o.Spec.NodeName != "" {
		x.node = o.Spec.NodeName
	}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && x.Ready == 0 {
			x.Ready = at
		}
	}
	if !o.DeletionTimestamp.IsZero() && x.Gone == 0 {
		x.Gone = at
	}
}

// endPod notes that a pod is gone.
func (p *player) endPod(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.pods[name]; x != nil && x.Gone == 0 {
		x.Gone = max(1, time.Since(p.begin).Milliseconds())
	}
}

// lag returns how long the cluster took at most to make the pods of a greater number of
// replicas, in milliseconds.
func (p *player) lag(r *record) int64 {
	most := int64(0)
	for i := range p.bound.Workloads {
		steps := p.bound.Workloads[i].Schedule
		var created []int64
		for _, x := range r.Pods {
			if x.Workload == workloadOf(p.bound.Workloads[i].Name) {
				created = append(created, x.Created)
			}
		}
		for k := 1; k < len(steps); k++ {
			at := int64(steps[k].At - p.bound.Start)
			from, _ := slices.BinarySearch(created, at)
			if more := int(steps[k].Replicas - steps[k-1].Replicas); more > 0 && from+more <= len(created) {
				most = max(most, created[from+more-1]-at)
			}
		}
	}
	return most
}

// joins logs how long nodes took to join and to be initialized, as measured, and returns
// the latter in milliseconds, in the mean.
func (p *player) joins(t *testing.T) int64 {
	var register, initialize time.Duration
	n := 0
	for _, c := range p.claims {
		if !c.initialized.IsZero() && !c.launched.IsZero() {
			register, initialize, n = register+c.registered.Sub(c.launched), initialize+c.initialized.Sub(c.registered), n+1
		}
	}
	if n == 0 {
		return 0
	}
	t.Logf("%s: %d nodes were registered %v after their launch and initialized %v later, in the mean", p.name, n,
		(register / time.Duration(n)).Round(10*time.Millisecond), (initialize / time.Duration(n)).Round(10*time.Millisecond))
	return (initialize / time.Duration(n)).Milliseconds()
}
