package asg

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/asg/fake"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// slots is how many pods of the contest fit on a node.
const slots = 2

// A contest is a fixture with pods, a Cluster Autoscaler and Spotter's drains, all drawn from one
// seed.
type contest struct {
	*fixture
	seed  uint64
	draws uint64

	pods     []string // the instance that each is on; empty while pending
	cordoned map[string]bool
	removing map[string]bool // instances with the taint of the rival
	seen     int             // of the instances that were ended
	rival    rival
	swap     *swap
	swaps    int // begun
	done     int // ended well
	inRival  bool
}

// A swap is one drain by Spotter.
type swap struct {
	token, source string
	released      bool
	began         time.Time
}

// A rival does to groups what the Cluster Autoscaler does: it sets absolute sizes
// from a cache, taints nodes that have not been needed for a while, moves their
// pods and terminates them, and takes back sizes that bring nothing.
type rival struct {
	cached   map[string]int
	cachedAt time.Time
	idle     map[string]time.Time
	short    map[string]time.Time
}

const (
	rivalCache = time.Minute
	rivalIdle  = time.Minute
	rivalShort = 5 * time.Minute
)

func (c *contest) chance(stream string) chance.Key {
	c.draws++
	return chance.Stream(c.seed, stream).At1(c.draws)
}

// nodes returns the instances that are Nodes, by their ID.
func (c *contest) nodes() []corev1.Node {
	var list corev1.NodeList
	c.must(c.kube.List(c.ctx(), &list))
	return list.Items
}

func (c *contest) podsOn(id string) int {
	n := 0
	for _, p := range c.pods {
		if p == id {
			n++
		}
	}
	return n
}

func (c *contest) pending() int { return c.podsOn("") }

// schedule puts pending pods where there is room.
func (c *contest) schedule() {
	if c.pending() == 0 {
		return
	}
	for _, n := range c.nodes() {
		id, _ := instanceID(n.Spec.ProviderID)
		if c.cordoned[id] || c.removing[id] || !c.inService(id) {
			continue
		}
		for i := range c.pods {
			if c.pods[i] == "" && c.podsOn(id) < slots {
				c.pods[i] = id
			}
		}
	}
}

func (c *contest) inService(id string) bool {
	for _, g := range c.groups() {
		for _, i := range g.Instances {
			if i.ID == id {
				return i.State == fake.InService
			}
		}
	}
	return false
}

// check fails when an instance was ended on which pods ran.
func (c *contest) check(doing string) {
	c.t.Helper()
	ended := c.cloud.Ended()
	for _, id := range ended[c.seen:] {
		if n := c.podsOn(id); n > 0 {
			c.t.Fatalf("%s: %s was ended with %d pods on it; repeat with -rival.seed=%d", doing, id, n, c.seed)
		}
	}
	c.seen = len(ended)
}

// scan is one loop of the rival.
func (c *contest) scan() {
	c.inRival = true
	defer func() { c.inRival = false }()
	r := &c.rival
	if c.cloud.Now().Sub(r.cachedAt) >= rivalCache {
		r.cachedAt = c.cloud.Now()
		for _, g := range c.groups() {
			r.cached[g.Name] = g.Desired
		}
	}
	if !c.scaleUp() {
		c.scaleDown()
	}
	c.giveUp()
	c.check("the Cluster Autoscaler")
}

// scaleUp raises a group for the pods that will not fit on the instances that are on their way,
// judging by the cache.
func (c *contest) scaleUp() bool {
	coming := 0
	for _, g := range c.groups() {
		here := 0
		for _, i := range g.Instances {
			if i.State == fake.InService && c.service[i.ID].After(c.cloud.Now()) {
				here++ // it has a Node
			}
		}
		coming += max(0, c.rival.cached[g.Name]-here)
	}
	missing := (c.pending() - slots*coming + slots - 1) / slots
	if missing <= 0 {
		return false
	}
	names := []string{"web-od", "web-spot"}
	name := names[c.chance("expander").IntN(2)]
	size := c.rival.cached[name] + missing
	if size > c.cloud.Group(name).Max {
		return false
	}
	if c.cloud.SetDesired(name, size) {
		c.rival.cached[name] = size
	}
	return true
}

// scaleDown terminates a node that has not been needed for a while: its pods fit elsewhere, and
// scale-down is not disabled for it.
func (c *contest) scaleDown() {
	r := &c.rival
	nodes := c.nodes()
	free := 0
	open := func(n *corev1.Node) (string, bool) {
		id, _ := instanceID(n.Spec.ProviderID)
		return id, !c.cordoned[id] && !c.removing[id] && c.inService(id)
	}
	for i := range nodes {
		if id, ok := open(&nodes[i]); ok {
			free += slots - c.podsOn(id)
		}
	}
	for i := range nodes {
		n := &nodes[i]
		id, ok := open(n)
		pods := c.podsOn(id)
		if !ok || pods == slots || n.Annotations[ScaleDownDisabled] == "true" || free-(slots-pods) < pods {
			delete(r.idle, id)
			continue
		}
		if r.idle[id].IsZero() {
			r.idle[id] = c.cloud.Now()
		}
		if c.cloud.Now().Sub(r.idle[id]) < rivalIdle {
			continue
		}
		g := c.groupOf(id)
		if g.Desired <= g.Min || r.cached[g.Name] <= g.Min {
			continue
		}
		c.remove(n, id, g.Name)
		return // one at a time
	}
}

func (c *contest) groupOf(id string) fake.Group {
	for _, g := range c.groups() {
		for _, i := range g.Instances {
			if i.ID == id {
				return g
			}
		}
	}
	return fake.Group{}
}

// remove taints a node, evicts its pods and terminates it.
func (c *contest) remove(n *corev1.Node, id, group string) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: TaintToBeDeleted, Effect: corev1.TaintEffectNoSchedule})
	if err := c.kube.Update(c.ctx(), n); err != nil {
		return // another writer was first: the next loop decides again
	}
	c.removing[id] = true
	c.evict(id)
	if c.cloud.Terminate(id) {
		c.rival.cached[group]--
		return
	}
	// At its least size after all: the taint comes off again.
	var now corev1.Node
	c.must(c.kube.Get(c.ctx(), client.ObjectKey{Name: n.Name}, &now))
	now.Spec.Taints = nil
	c.must(c.kube.Update(c.ctx(), &now))
	delete(c.removing, id)
}

func (c *contest) evict(id string) {
	for i := range c.pods {
		if c.pods[i] == id {
			c.pods[i] = ""
		}
	}
	c.schedule()
}

// giveUp takes a size back that has brought nothing for long.
func (c *contest) giveUp() {
	for _, g := range c.groups() {
		live := 0
		for _, i := range g.Instances {
			if !strings.HasPrefix(i.State, fake.Terminating) {
				live++
			}
		}
		switch since := c.rival.short[g.Name]; {
		case g.Desired <= live:
			delete(c.rival.short, g.Name)
		case since.IsZero():
			c.rival.short[g.Name] = c.cloud.Now()
		case c.cloud.Now().Sub(since) > rivalShort:
			c.cloud.SetDesired(g.Name, max(g.Min, live))
			c.rival.cached[g.Name] = max(g.Min, live)
		}
	}
}

// work runs one step of Spotter: it starts a swap or continues one.
func (c *contest) work(mayBegin bool) {
	if c.swap == nil {
		if mayBegin {
			c.beginSwap()
		}
		return
	}
	s := c.swap
	source := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(s.source)}, Spec: corev1.NodeSpec{ProviderID: "aws:///x/" + s.source}}
	if s.released {
		if c.groupOf(s.source).Name == "" && c.backend.Settle(c.ctx(), []string{s.token}) == nil {
			delete(c.cordoned, s.source)
			c.swap = nil
			c.done++
		}
		return
	}
	r, err := c.backend.Replaced(c.ctx(), []string{s.token})
	late := c.cloud.Now().Sub(s.began) > 20*time.Minute
	switch {
	case err != nil && !late:
	case r == backend.ReplacementWaiting && !late:
	case r == backend.ReplacementReady && !late:
		c.cordoned[s.source] = true
		c.evict(s.source)
		err := c.backend.Release(c.ctx(), source)
		s.released = err == nil
		if errors.Is(err, backend.ErrNotYet) || err == nil {
			return
		}
		fallthrough
	default:
		if c.backend.Undo(c.ctx(), source, []string{s.token}) == nil {
			delete(c.cordoned, s.source)
			c.swap = nil
		}
	}
}

// beginSwap requests a node of the other group in place of one that is busy.
func (c *contest) beginSwap() {
	from, to := "web-od", policy.Spot
	if c.chance("direction").IntN(4) == 0 {
		from, to = "web-spot", policy.OnDemand
	}
	for _, i := range c.cloud.Group(from).Instances {
		if c.podsOn(i.ID) == 0 || i.State != fake.InService {
			continue
		}
		c.swaps++
		s := &swap{token: fmt.Sprintf("%x-%d", c.seed, c.swaps), source: i.ID, began: c.cloud.Now()}
		if c.launch(s.token, to) != nil {
			return
		}
		c.swap = s
		n := c.node(i.ID)
		if err := c.backend.Prepare(c.ctx(), n); err != nil {
			if c.backend.Undo(c.ctx(), n, []string{s.token}) == nil {
				c.swap = nil
			}
		}
		return
	}
}

// sizes returns what both groups are to hold.
func (c *contest) sizes() string {
	var all []string
	for _, g := range c.groups() {
		all = append(all, fmt.Sprintf("%s %d", g.Name, g.Desired))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
