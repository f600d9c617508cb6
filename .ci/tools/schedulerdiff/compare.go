package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
)

// A tally counts what was compared.
type tally struct {
	pods, equal                  int // cycles, those in which both did the same
	tried, alike                 int // cycles in which one of them preempts, and those alike
	bound, scored, ties, evicted int // of which: bound, by score, with several best nodes, with victims
	differences                  []string
	kinds                        map[string]int
}

func (t *tally) add(x *tally) {
	t.pods, t.equal = t.pods+x.pods, t.equal+x.equal
	t.tried, t.alike = t.tried+x.tried, t.alike+x.alike
	t.bound, t.scored, t.ties, t.evicted = t.bound+x.bound, t.scored+x.scored, t.ties+x.ties, t.evicted+x.evicted
	t.differences = append(t.differences, x.differences...)
	if t.kinds == nil {
		t.kinds = map[string]int{}
	}
	for k, n := range x.kinds {
		t.kinds[k] += n
	}
}

// The least shares of equal decisions. What is known to differ (docs/fidelity.md,
// Scheduler) concerns preemption among pods that are ending, and keeps clear of them.
const (
	leastPlaced    = 0.9998 // of the cycles without preemption
	leastPreempted = 0.955  // of those with it
)

// print reports the tally; it is an error if too few decisions are equal. A single
// cluster must be equal altogether.
func (t *tally) print(out io.Writer, single bool) error {
	share := func(n, of int) float64 { return float64(n) / float64(max(1, of)) }
	placed, preempted := share(t.equal-t.alike, t.pods-t.tried), share(t.alike, t.tried)
	fmt.Fprintf(out, "%d pods tried: %d bound (%d by score, %d of them among several best nodes), %d preempted others\n",
		t.pods, t.bound, t.scored, t.ties, t.evicted)
	fmt.Fprintf(out, "equal: %d, %.3f%%; without preemption %.3f%% of %d, with it %.2f%% of %d\n",
		t.equal, 100*share(t.equal, t.pods), 100*placed, t.pods-t.tried, 100*preempted, t.tried)
	for _, k := range slices.Sorted(maps.Keys(t.kinds)) {
		fmt.Fprintf(out, "  %-28s %d\n", k, t.kinds[k])
	}
	switch {
	case t.pods == 0:
		return errors.New("no pod was tried")
	case single && t.equal < t.pods:
		return errors.New("the schedulers differ")
	case !single && (placed < leastPlaced || t.tried == 0 || preempted < leastPreempted):
		return fmt.Errorf("equal are %.3f%% and with preemption %.2f%%, want %.2f and %.1f%%",
			100*placed, 100*preempted, 100*leastPlaced, 100*leastPreempted)
	}
	return nil
}

// A comparison runs both schedulers on one cluster.
type comparison struct {
	st    *state
	real  *realScheduler
	ours  *ours
	nodes map[string]*corev1.Node
	tally tally

	// waiting are the pods that were tried and have no node.
	waiting []string
}

// compareState plays the steps of st.
func compareState(ctx context.Context, st *state) (*tally, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := newReal(ctx, st)
	if err != nil {
		return nil, err
	}
	o, err := newOurs(st)
	if err != nil {
		return nil, err
	}
	c := &comparison{st: st, real: r, ours: o, nodes: map[string]*corev1.Node{}, tally: tally{kinds: map[string]int{}}}
	for i := range st.Nodes {
		c.nodes[st.Nodes[i].Name] = &st.Nodes[i]
	}
	for _, s := range st.Steps {
		if err := c.step(ctx, s); err != nil {
			return nil, fmt.Errorf("%s %s: %w", s.Do, s.On, err)
		}
	}
	return &c.tally, nil
}

func (c *comparison) step(ctx context.Context, s step) error {
	switch p := c.real.pods[s.On]; s.Do {
	case "cordon", "uncordon":
		n, err := c.real.cordon(c.nodes[s.On], s.Do == "cordon")
		c.nodes[s.On] = n
		c.ours.setNode(n, c.st)
		return err
	case "retry":
		return c.retry(ctx)
	case "schedule":
		if p == nil {
			return nil
		}
		return c.schedule(ctx, s.On)
	case "terminate":
		if p == nil || p.Spec.NodeName == "" || p.DeletionTimestamp != nil {
			return nil
		}
		c.ours.terminate(s.On)
		return c.real.terminate(s.On, false)
	case "remove":
		if p == nil {
			return nil
		}
		c.ours.remove(s.On)
		return c.real.remove(s.On)
	}
	return fmt.Errorf("unknown step")
}

func (c *comparison) retry(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(c.real.pods)) {
		if p := c.real.pods[name]; p.DeletionTimestamp != nil && len(p.Status.Conditions) > 0 {
			c.ours.remove(name)
			if err := c.real.remove(name); err != nil {
				return err
			}
		}
	}
	var pods []*corev1.Pod
	for _, name := range c.waiting {
		if p := c.real.pods[name]; p != nil {
			pods = append(pods, p)
		}
	}
	queued(pods)
	c.waiting = nil
	for _, p := range pods {
		if err := c.schedule(ctx, key(p)); err != nil {
			return err
		}
	}
	return nil
}

// schedule lets both choose for a pod, compares, and makes true in both what the
// real one did; of equally good nodes it takes ours.
func (c *comparison) schedule(ctx context.Context, name string) error {
	want, err := c.real.schedule(ctx, name)
	if err != nil {
		return err
	}
	got := c.ours.schedule(name)
	c.tally.pods++
	if kind, text := differ(want, got); kind != "" {
		c.tally.kinds[kind]++
		c.tally.differences = append(c.tally.differences, fmt.Sprintf("pod %s: %s: %s (filters: %s)", name, kind, text,
			c.ours.filters(name)))
	} else {
		c.tally.equal++
	}
	c.count(want, got)
	if want.node == "" {
		c.waiting = append(c.waiting, name)
		c.follow(name, want)
		return nil
	}
	node := want.node
	if slices.Contains(want.best, got.node) {
		node = got.node
	}
	return c.bind(name, node)
}

func (c *comparison) count(want, got choice) {
	if kind, _ := differ(want, got); want.nominated != "" || kind == preemption {
		c.tally.tried++
		if kind == "" {
			c.tally.alike++
		}
	}
	if want.node != "" {
		c.tally.bound++
	}
	if len(want.best) > 0 {
		c.tally.scored++
	}
	if len(want.best) > 1 {
		c.tally.ties++
	}
	if want.nominated != "" {
		c.tally.evicted++
	}
}

// follow nominates in ours as the real one did.
func (c *comparison) follow(name string, want choice) {
	if want.nominated != "" {
		c.ours.nominate(name, want.nominated, want.victims)
	} else if c.real.pods[name].Status.NominatedNodeName == "" {
		c.ours.Withdraw(c.ours.podIDs[name])
	}
}

func (c *comparison) bind(name, node string) error {
	p := c.real.pods[name]
	if err := c.real.bind(name, node); err != nil {
		return err
	}
	c.ours.bind(name, node, policy.TimeOf(c.real.next))
	zone := c.nodes[node].Labels[corev1.LabelTopologyZone]
	for _, claim := range claimsOf(p) {
		if err := c.provision(p.Namespace, claim, zone); err != nil {
			return err
		}
	}
	return nil
}

// provision makes the volume that a claim waits for, and fixes all pods with it to
// its zone.
func (c *comparison) provision(namespace, name, zone string) error {
	x, ok, err := c.real.claimInformer.GetIndexer().GetByKey(namespace + "/" + name)
	old, is := x.(*corev1.PersistentVolumeClaim)
	if err != nil || !ok || !is || old.Spec.VolumeName != "" {
		return err
	}
	claim := old.DeepCopy()
	volume := provision(claim, zone)
	if err := c.real.volumeInformer.set(nil, volume); err != nil {
		return err
	}
	if err := c.real.claimInformer.set(old, claim); err != nil {
		return err
	}
	if zone = zoneOf(volume); zone == "" {
		return nil
	}
	for _, p := range c.real.pods {
		if p.Namespace == namespace && slices.Contains(claimsOf(p), name) {
			c.ours.pods[c.ours.podIDs[key(p)]].VolumeZone = policy.ZoneID(slices.Index(c.ours.zones, zone))
		}
	}
	return nil
}

// differ compares what the real scheduler did with what ours did.
func differ(want, got choice) (kind, text string) {
	switch {
	case want.node == "" && got.node != "":
		return "bound too much", fmt.Sprintf("no node passes the filters, ours takes %s", got.node)
	case want.node != "" && got.node == "":
		return "not bound", fmt.Sprintf("%s passes the filters", want.node)
	case want.node == "":
		return differVictims(want, got)
	case !slices.Equal(want.feasible, got.feasible):
		return "feasible nodes", fmt.Sprintf("%v, ours %v", want.feasible, got.feasible)
	case len(want.best) == 0 && got.node != want.node:
		return "node", fmt.Sprintf("%s, ours %s", want.node, got.node)
	case len(want.best) > 0 && !slices.Contains(want.best, got.node):
		return "best nodes", fmt.Sprintf("%v, ours %s (score %d)", want.best, got.node, want.scores[got.node])
	}
	var wrong []string
	for _, n := range slices.Sorted(maps.Keys(got.scores)) {
		if s := got.scores[n]; s != want.scores[n] {
			wrong = append(wrong, fmt.Sprintf("%s %d, ours %d", n, want.scores[n], s))
		}
	}
	if len(wrong) > 0 {
		return "scores", strings.Join(wrong, "; ")
	}
	return "", ""
}

// preemption is the kind of a difference in nominated node or victims.
const preemption = "preemption"

func differVictims(want, got choice) (kind, text string) {
	if want.nominated != got.nominated || !slices.Equal(want.victims, got.victims) {
		return preemption, fmt.Sprintf("%s by ending %v, ours %s by ending %v",
			want.nominated, want.victims, got.nominated, got.victims)
	}
	return "", ""
}
