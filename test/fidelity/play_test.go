package fidelity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	appsv1 "k8s.io/api/apps/v1"

	backend "github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/test/e2e/bill"
	"github.com/spotter-dev/spotter/test/karpenter"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A player plays a script on a real cluster.
type player struct {
	*script
	env       *testenv.Env
	client    client.WithWatch
	karpenter *karpenter.Karpenter
	weather   *weather.Weather
	dir       string
	begin     time.Time

	mu     sync.Mutex
	slots  map[policy.MarketID][]bool // taken ones
	claims map[string]*claim
	pods   map[string]*pod // by UID
}

// coming is held while a cluster comes up.
var coming sync.Mutex

// play plays the script with the weather of a seed and returns what became of it.
func play(t *testing.T, s *script, seed uint64) *record {
	t.Helper()
	drawn, err := s.stage.DrawWeather(seed)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{script: s, weather: drawn, dir: t.TempDir(), slots: map[policy.MarketID][]bool{},
		claims: map[string]*claim{}, pods: map[string]*pod{}}
	coming.Lock() // a cluster that comes up takes all of a small machine from the others
	p.start(t)
	time.Sleep(time.Until(p.begin))
	coming.Unlock()
	ctx, stop := context.WithDeadline(t.Context(), p.begin.Add(s.bound.Duration))
	defer stop()
	var parts sync.WaitGroup
	parts.Go(func() { p.scale(ctx, t) })
	parts.Go(func() { p.blow(ctx, t) })
	parts.Wait()
	r := p.record(t, seed)
	p.saveLogs(t, seed)
	return r
}

// start brings up the cluster and sets the start of the day.
func (p *player) start(t *testing.T) {
	t.Helper()
	p.env = testenv.New(t, testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true, PodDelete: podDelete,
		CRDs: karpenter.CRDsOf(t, p.version)})
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), backend.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	if p.client, err = client.NewWithWatch(p.env.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	for _, o := range p.objects {
		if err := p.client.Create(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
			t.Fatal(err)
		}
	}
	// Prices use the clock of the machine, so Karpenter is started once the start of the
	// day is known. It has until then to come up.
	p.begin = time.Now().Add(30 * time.Second).Truncate(time.Millisecond)
	p.karpenter = karpenter.Start(t, p.env, p.client, karpenter.Options{
		Version: p.version, Dir: p.dir, Types: p.types(), Prices: p.prices(), Interrupts: true, RefusedFor: refusedFor, JoinMin: joinLeast, JoinMax: joinMost,
	})
	for _, n := range p.wantedPools() {
		if err := p.client.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, "the NodePools are ready", func() error {
		var pools karpv1.NodePoolList
		if err := p.client.List(t.Context(), &pools); err != nil {
			return err
		}
		for i := range pools.Items {
			if !pools.Items[i].StatusConditions().Root().IsTrue() {
				return fmt.Errorf("%s is not", pools.Items[i].Name)
			}
		}
		return nil
	})
	if late := time.Since(p.begin); late > 0 {
		t.Fatalf("the cluster came up %v after the begin of the day", late)
	}
	karpenter.Follow(t, p.client, &karpv1.NodeClaimList{}, p.seeClaim, p.endClaim)
	karpenter.Follow(t, p.client, &corev1.PodList{}, p.seePod, p.endPod)
}

// types is what the provider sells: nodes that have as much allocatable as those of the
// simulator.
func (p *player) types() []any {
	offers := map[policy.TypeID][]karpenter.Offer{}
	for _, m := range p.markets() {
		x := &p.bound.Markets[m]
		price := p.stage.Prices(m).Price[0]
		offers[x.Type] = append(offers[x.Type], karpenter.Offer{Zone: p.bound.Zones[x.Zone], Capacity: x.Capacity.String(),
			Price: float64(price) / 1e6})
	}
	var all []any
	for _, id := range slices.Sorted(maps.Keys(offers)) {
		a := &p.bound.Types[id].Allocatable
		all = append(all, karpenter.Type(p.bound.Types[id].Name, map[string]string{
			"cpu":               fmt.Sprintf("%dm", a.CPU+karpenter.ReservedCPU),
			"memory":            fmt.Sprint(a.Memory + karpenter.ReservedMemory),
			"ephemeral-storage": fmt.Sprint(a.Storage),
			"pods":              fmt.Sprint(a.Pods),
		}, offers[id]))
	}
	return all
}

// prices are those of the script, on the clock of the machine.
func (p *player) prices() bill.Prices {
	all := bill.Prices{}
	for _, m := range p.markets() {
		curve := p.stage.Prices(m)
		var list []bill.Price
		for i, at := range curve.At {
			if curve.Price[i] == policy.NoPrice {
				continue // the price before it is charged on, and nothing is launched: the weather closes the market
			}
			list = append(list, bill.Price{From: p.begin.UnixMilli() + int64(at-p.bound.Start), MicroDollars: int64(curve.Price[i])})
		}
		all[p.marketName(m)] = list
	}
	return all
}

// wantedPools returns the NodePools of the script, or those that implement its CapacityPool.
func (p *player) wantedPools() []*karpv1.NodePool {
	var all []*karpv1.NodePool
	for _, n := range p.nodePools {
		all = append(all, n.DeepCopy())
	}
	if p.pool == nil {
		return all
	}
	weight := int32(100)
	for _, c := range p.capacities() {
		all = append(all, p.nodePool(c, weight))
		weight /= 2
	}
	return all
}

// nodePool returns the NodePool that buys a capacity type for the script's pool.
func (p *player) nodePool(c policy.CapacityType, weight int32) *karpv1.NodePool {
	d := &p.pool.Spec.Disruption
	n := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: backend.NodePoolName(p.pool.Name, c)}}
	n.Spec.Weight = &weight
	n.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
		Name: karpenter.NodeClass}
	n.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("Never")
	n.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{c.String()}},
	}
	n.Spec.Disruption = karpv1.Disruption{
		ConsolidationPolicy: karpv1.ConsolidationPolicy(d.ConsolidationPolicy),
		ConsolidateAfter:    karpv1.MustParseNillableDuration(d.ConsolidateAfter.Duration.String()),
		Budgets:             []karpv1.Budget{{Nodes: d.Budget.String()}},
	}
	return n
}

// now returns the time of the simulated clock.
func (p *player) now() policy.Time { return p.instant(time.Since(p.begin).Milliseconds()) }

// sleep waits for an instant of the simulated clock. It reports false if the day ends
// before.
func (p *player) sleep(ctx context.Context, at policy.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(p.begin.Add(at.Sub(p.bound.Start)))):
		return true
	}
}

// scale has every workload want what the script says.
func (p *player) scale(ctx context.Context, t *testing.T) {
	type step struct {
		at       policy.Time
		workload string
		replicas int32
	}
	var all []step
	for i := range p.bound.Workloads {
		w := &p.bound.Workloads[i]
		for _, x := range w.Schedule[1:] {
			all = append(all, step{x.At, workloadOf(w.Name), x.Replicas})
		}
	}
	slices.SortStableFunc(all, func(a, b step) int { return int(a.at - b.at) })
	for _, x := range all {
		if !p.sleep(ctx, x.at) {
			return
		}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: x.workload}}
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, x.replicas))
		if err := p.client.Patch(ctx, d, patch); err != nil && ctx.Err() == nil {
			t.Errorf("scaling %s: %v", x.workload, err)
		}
	}
	<-ctx.Done()
}

// blow has markets refuse and nodes be taken, as the weather has it.
func (p *player) blow(ctx context.Context, t *testing.T) {
	last := ""
	for {
		now := p.now()
		var closed []string
		for _, m := range p.markets() {
			if !p.weather.Open(int(m), now) {
				closed = append(closed, p.marketName(m))
			}
		}
		if text := strings.Join(closed, " "); text != last {
			last = text
			if err := p.karpenter.Refuse(closed...); err != nil {
				t.Error(err)
			}
		}
		if err := p.reclaim(now); err != nil {
			t.Error(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// reclaim announces the nodes whose announcement is due by now.
func (p *player) reclaim(now policy.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.claims {
		due := c.reclaim.At
		if c.reclaim.Notice != 0 {
			due = c.reclaim.Notice
		}
		if due == 0 || c.announced || now < due {
			continue
		}
		c.announced, c.reason = true, byReclaim
		if err := p.karpenter.Reclaim(c.node, p.begin.Add(c.reclaim.At.Sub(p.bound.Start))); err != nil {
			return err
		}
	}
	return nil
}

// record makes the record of a day that is over.
func (p *player) record(t *testing.T, seed uint64) *record {
	t.Helper()
	end := p.begin.Add(p.bound.Duration)
	log, err := os.Open(filepath.Join(p.env.Dir, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	lives, err := bill.Lives(log)
	if err != nil {
		t.Fatal(err)
	}
	evicted := p.env.Audit(t, 0, func(e testenv.AuditEvent) bool {
		return e.Resource == "pods" && e.Subresource == "eviction" && e.Code/100 == 2 && !e.DryRun && e.Time.Before(end)
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &record{Script: p.digest, Seed: seed}
	index, reasons := map[string]int{}, map[string]cause{}
	for _, l := range lives {
		from := l.Launched - p.begin.UnixMilli()
		if l.Launched == 0 || from >= p.bound.Duration.Milliseconds() {
			continue
		}
		n := nodeLife{Market: l.Market(), From: max(1, from)}
		if l.Ended != 0 && l.Ended < end.UnixMilli() {
			n.Until, n.Ended = l.Ended-p.begin.UnixMilli(), byOther
			if c := p.claims[l.Claim]; c != nil && c.reason != "" {
				n.Ended = c.reason
			}
		}
		if l.Node != "" {
			index[l.Node] = len(r.Nodes)
			if c := p.claims[l.Claim]; c != nil {
				reasons[l.Node] = c.reason
			}
		}
		r.Nodes = append(r.Nodes, n)
	}
	for _, x := range p.pods {
		life := x.podLife
		life.Node = -1
		if k, ok := index[x.node]; ok {
			life.Node = k
		}
		r.Pods = append(r.Pods, life)
	}
	for _, e := range evicted {
		x := eviction{At: e.Time.Sub(p.begin).Milliseconds(), Cause: byOther}
		if pod := p.pods[e.Name]; pod != nil && reasons[pod.node] != "" {
			x.Cause = reasons[pod.node]
		}
		r.Evictions = append(r.Evictions, x)
	}
	r.settle()
	r.Lag = max(p.lag(r), p.joins(t))
	return r
}

// logsVariable names a folder to which the logs of real runs are copied.
const logsVariable = "SPOTTER_FIDELITY_LOGS"

// saveLogs copies the logs of Karpenter and the audit log if requested.
func (p *player) saveLogs(t *testing.T, seed uint64) {
	t.Helper()
	folder := os.Getenv(logsVariable)
	if folder == "" {
		return
	}
	for to, from := range map[string]string{"karpenter": p.karpenter.LogFile(), "audit": filepath.Join(p.env.Dir, "audit.log")} {
		if err := copyFile(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.log", p.name, seed, to)), from); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%s: the day began at %s", p.name, p.begin.UTC().Format(time.RFC3339Nano))
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
