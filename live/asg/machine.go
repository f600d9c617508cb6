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

// absentMax is how many whole reads in a row must lack an instance that was not
// seen to end: one of them may be old.
const absentMax = 2

// An ending is an instance that AWS was asked to terminate.
type ending struct {
	at       policy.Time
	accepted bool // and not only sent
}

// An instanceTable holds what is known of instances that their groups do not say, and what
// of them the sink knows. Its lock is that of the groups: a report is of both at one instant.
type instanceTable struct {
	cfg     *Config
	cloud   *cloud
	started policy.Time // refusals from before are not reported

	mu       *sync.Mutex // that of the groups; guards all below
	bought   map[string]bought
	reported map[string]backend.Machine // by instance
	absent   map[string]int             // reads in a row that lacked an instance
	refusals map[string]policy.Time     // by market, when last reported
	advised  map[string]policy.Time     // instances that it is recommended to leave
	reclaims map[string]policy.Time     // instances that the provider takes, and when
	endings  map[string]ending          // instances that were asked to end
}

func newInstanceTable(cfg *Config, aws *cloud) *instanceTable {
	return &instanceTable{
		cfg: cfg, cloud: aws, started: cfg.now(), bought: map[string]bought{}, reported: map[string]backend.Machine{}, absent: map[string]int{},
		refusals: map[string]policy.Time{}, advised: map[string]policy.Time{}, reclaims: map[string]policy.Time{}, endings: map[string]ending{},
	}
}

// ending returns how an instance was asked to end, and whether it was.
func (r *instanceTable) ending(id string) (ending, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, asked := r.endings[id]
	return e, asked
}

// setEnding notes that an instance was asked to end.
func (r *instanceTable) setEnding(id string, e ending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endings[id] = e
}

// leftToEKS reports whether EKS is replacing an instance of g by itself.
func (r *instanceTable) leftToEKS(g *group, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drainsItself(g, id)
}

// taken reports whether the provider takes an instance.
func (r *instanceTable) taken(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, taken := r.reclaims[id]
	return taken
}

// report collects what the sink does not know yet of the groups. first says that
// these were never read before: what is there then is not news. r.mu is held.
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

// noticeFor is how long a warning is kept of an instance that no group has.
const noticeFor = 15 * time.Minute

// forgetNotices drops warnings of instances that are in none of the groups.
func (r *instanceTable) forgetNotices() {
	for _, warned := range []map[string]policy.Time{r.reclaims, r.advised} {
		maps.DeleteFunc(warned, func(id string, at policy.Time) bool {
			_, ours := r.reported[id]
			return !ours && r.cfg.now().Sub(at) > noticeFor
		})
	}
}

// machineOf returns an instance as the sink gets it.
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
		m.Token = r.reported[i.id].Token // its launch has been struck out since
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

// sameMachine reports whether nothing has changed that was reported to the sink.
func sameMachine(a, b *backend.Machine) bool {
	return a.Pool == b.Pool && a.Market == b.Market && a.Node == b.Node && a.Phase == b.Phase && a.Token == b.Token &&
		a.Launched == b.Launched && a.ActedBy == b.ActedBy && a.AtGroupMin == b.AtGroupMin && a.ProviderID == b.ProviderID &&
		slices.Equal(a.Labels, b.Labels) && slices.Equal(a.Taints, b.Taints)
}

// reportRefusals reports the refused launches of g, once in RefusalInterval for each market, and
// requests a step.
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

// marketsOf returns the markets of g that a refused launch in zone concerns. A group with several
// types has requested all of them, on Spot or on demand as it buys. Groups that mix the two do not
// report which was refused, so Spot is assumed.
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
	if s, ok := decodeSteer(g.tags[TagSteer]); ok && s.since >= t.steers[g.pool].Since {
		t.steers[g.pool] = policy.SteerState{Set: true, Share: s.share, Since: s.since}
	}
}

// drainsItself reports whether EKS is replacing an instance by itself.
func (r *instanceTable) drainsItself(g *group, id string) bool {
	_, advised := r.advised[id]
	return advised && g.managed.name != ""
}

// isSpot reports whether an instance of g was bought as spot.
func (r *instanceTable) isSpot(g *group, id string) bool {
	if how, ok := r.bought[id]; ok {
		return how.spot
	}
	return g.buys.onDemandPercent == 0
}

// readBought finds out how instances that are new were bought. That never changes,
// so it is asked once.
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

// seenLately reports whether an instance that a read lacks may only be too new for it: the sink has
// not yet been informed of its end.
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
