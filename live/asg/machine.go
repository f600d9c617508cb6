package asg

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// absentMax is the number of consecutive complete reads that must lack an instance whose end was
// not observed, since one of the reads may be old.
const absentMax = 2

// An ending records that Spotter requested the termination of an instance.
type ending struct {
	at       policy.Time
	accepted bool // AWS has accepted the request; false if it was only sent
}

// An instanceTable contains what is known of instances but missing from the data of their groups,
// and what was reported to the sink. It shares the lock of the groups, so that a report covers both
// at one instant.
type instanceTable struct {
	cfg     *Config
	cloud   *cloud
	started policy.Time // earlier refusals are not reported

	mu       *sync.Mutex // lock of the group table; guards the fields below
	bought   map[string]bought
	reported map[string]backend.Machine // by instance ID
	absent   map[string]int             // number of consecutive reads that lacked an instance
	refusals map[string]policy.Time     // time of the last report, by market
	advised  map[string]policy.Time     // time of the rebalance recommendation, by instance ID
	reclaims map[string]policy.Time     // time of the reclaim, by instance ID
	endings  map[string]ending          // requested terminations, by instance ID
}

func newInstanceTable(cfg *Config, aws *cloud) *instanceTable {
	return &instanceTable{
		cfg: cfg, cloud: aws, started: cfg.now(), bought: map[string]bought{}, reported: map[string]backend.Machine{}, absent: map[string]int{},
		refusals: map[string]policy.Time{}, advised: map[string]policy.Time{}, reclaims: map[string]policy.Time{}, endings: map[string]ending{},
	}
}

// ending returns the requested termination of an instance, and whether there is one.
func (r *instanceTable) ending(id string) (ending, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, asked := r.endings[id]
	return e, asked
}

// setEnding records that the termination of an instance was requested.
func (r *instanceTable) setEnding(id string, e ending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endings[id] = e
}

// leftToEKS reports whether EKS is replacing an instance of g.
func (r *instanceTable) leftToEKS(g *group, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drainsItself(g, id)
}

// taken reports whether the provider is reclaiming an instance.
func (r *instanceTable) taken(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, taken := r.reclaims[id]
	return taken
}

// report collects the changes of the groups since the last report to the sink. first reports
// whether the groups were never read before, in which case existing instances do not count as new
// launches. The caller must hold r.mu.
func (r *instanceTable) report(groups []*group, nodes map[string]*corev1.Node, first bool) *sinkReport {
	t := &sinkReport{steers: map[string]policy.SteerState{}}
	seen := map[string]bool{}
	for _, g := range groups {
		if g.pool == conflicting {
			continue
		}
		for i := range g.instances {
			m := r.machineOf(g, &g.instances[i], nodes[g.instances[i].id])
			seen[m.Name] = true
			old, known := r.reported[m.Name]
			if !known && !first && m.Market != "" {
				t.events = append(t.events, backend.Event{Kind: backend.MetLaunch, Pool: g.pool, Market: m.Market, At: m.Launched})
			}
			if !known || !sameMachine(&old, &m) {
				t.machines = append(t.machines, m)
				r.reported[m.Name] = m
			}
		}
		r.reportRefusals(t, g)
		r.reportSteer(t, g)
	}
	for _, name := range slices.Sorted(maps.Keys(r.reported)) {
		if seen[name] {
			delete(r.absent, name)
			continue
		}
		r.absent[name]++
		if r.reported[name].Phase == policy.NodeDeleting || r.absent[name] >= absentMax {
			t.dropped = append(t.dropped, name)
			delete(r.reported, name)
			delete(r.absent, name)
			delete(r.advised, name)
			delete(r.reclaims, name)
			delete(r.endings, name)
		}
	}
	r.forgetNotices()
	return t
}

// noticeFor is how long a notice is kept for an instance that is in no group.
const noticeFor = 15 * time.Minute

// forgetNotices deletes old notices of instances that are in no group.
func (r *instanceTable) forgetNotices() {
	for _, warned := range []map[string]policy.Time{r.reclaims, r.advised} {
		maps.DeleteFunc(warned, func(id string, at policy.Time) bool {
			_, ours := r.reported[id]
			return !ours && r.cfg.now().Sub(at) > noticeFor
		})
	}
}

// machineOf returns an instance as it is reported to the sink.
func (r *instanceTable) machineOf(g *group, i *instance, node *corev1.Node) backend.Machine {
	m := backend.Machine{
		Name: i.id, Pool: g.pool, ProviderID: providerID(i.zone, i.id), Phase: policy.NodeLaunching,
		Token: g.tokenOf(i.id), AtGroupMin: g.desired <= g.min, Labels: g.labels, Taints: g.taints,
	}
	how, known := r.bought[i.id]
	if known {
		m.Launched = how.at
	} else if old, ok := r.reported[i.id]; ok {
		m.Launched = old.Launched
	} else {
		m.Launched = r.cfg.now()
	}
	if known || !g.mixes() {
		m.Market = marketName(r.cfg.Region, i.zone, i.kind, capacityOf(known && how.spot ||
			!known && g.buys.onDemandPercent == 0))
	}
	if m.Token == "" {
		m.Token = r.reported[i.id].Token // the record of its launch has been removed
	}
	if node != nil {
		m.Node, m.Phase = node.Name, policy.NodeRegistered
		if kube.IsTainted(node, TaintToBeDeleted) {
			m.ActedBy = policy.ActorClusterAutoscaler
		}
	}
	if i.ending() {
		m.Phase = policy.NodeDeleting
	}
	if r.drainsItself(g, i.id) {
		m.ActedBy = policy.ActorEKS
	}
	return m
}

// sameMachine reports whether all reported fields are equal.
func sameMachine(a, b *backend.Machine) bool {
	return a.Pool == b.Pool && a.Market == b.Market && a.Node == b.Node && a.Phase == b.Phase && a.Token == b.Token &&
		a.Launched == b.Launched && a.ActedBy == b.ActedBy && a.AtGroupMin == b.AtGroupMin && a.ProviderID == b.ProviderID &&
		slices.Equal(a.Labels, b.Labels) && slices.Equal(a.Taints, b.Taints)
}

// reportRefusals reports the refused launches of g, at most once per RefusalInterval for each
// market, and requests a step.
func (r *instanceTable) reportRefusals(t *sinkReport, g *group) {
	for _, a := range slices.Backward(g.activities) {
		if !a.refused || a.start < r.started {
			continue
		}
		for _, m := range r.marketsOf(g, a.zone) {
			if last, ok := r.refusals[m]; ok && a.start.Sub(last) < r.cfg.RefusalInterval {
				continue
			}
			r.refusals[m] = a.start
			t.events = append(t.events, backend.Event{Kind: backend.MetRefusal, Pool: g.pool, Market: m, At: a.start})
			t.wake = backend.WakeRefused
		}
	}
}

// marketsOf returns the markets of g that are affected by a refused launch in zone. A group with
// several types has requested all of them, with the capacity type that it buys. For a group that
// mixes Spot and on-demand, AWS does not report which was refused, so Spot is assumed.
func (r *instanceTable) marketsOf(g *group, zone string) []string {
	zones := g.zones
	if slices.Contains(zones, zone) {
		zones = []string{zone}
	}
	var all []string
	for _, z := range zones {
		for _, kind := range g.types {
			all = append(all, marketName(r.cfg.Region, z, kind, capacityOf(g.buys.onDemandPercent < 100)))
		}
	}
	return all
}

func (r *instanceTable) reportSteer(t *sinkReport, g *group) {
	if s, ok := decodeSteer(g.tags[TagSteer]); ok && s.Since >= t.steers[g.pool].Since {
		t.steers[g.pool] = s
	}
}

// drainsItself reports whether EKS is replacing an instance of g. The caller must hold r.mu.
func (r *instanceTable) drainsItself(g *group, id string) bool {
	_, advised := r.advised[id]
	return advised && g.managed.name != ""
}

// isSpot reports whether an instance of g is a Spot instance. The caller must hold r.mu.
func (r *instanceTable) isSpot(g *group, id string) bool {
	if how, ok := r.bought[id]; ok {
		return how.spot
	}
	return g.buys.onDemandPercent == 0
}

// readBought reads the purchase options of new instances. They never change, so one read is enough.
func (r *instanceTable) readBought(ctx context.Context, groups []*group) error {
	r.mu.Lock()
	known := r.bought
	r.mu.Unlock()
	var ids []string
	next := map[string]bought{}
	for _, g := range groups {
		for _, i := range g.instances {
			if x, ok := known[i.id]; ok {
				next[i.id] = x
			} else {
				ids = append(ids, i.id)
			}
		}
	}
	if len(ids) > 0 {
		found, err := r.cloud.instances(ctx, ids)
		if err != nil {
			return err
		}
		maps.Copy(next, found)
	}
	r.mu.Lock()
	r.bought = next
	r.mu.Unlock()
	return nil
}

// seenLately reports whether a read may lack an instance because the instance is too new or the
// read is old: its launch is recent, or its end has not yet been reported to the sink.
func (r *instanceTable) seenLately(g *group, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(g.activities, func(a activity) bool {
		return a.instance == id &&
			r.cfg.now().Sub(a.start) < writingMax
	}) {
		return true
	}
	_, reported := r.reported[id]
	return reported
}
