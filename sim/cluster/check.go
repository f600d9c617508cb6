package cluster

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/result"
)

// CheckAll checks the invariants of the cluster. It counts everything again in the simplest way; only
// definitions, such as serves and expected, are shared with the code that it checks.
func (c *Cluster) CheckAll() error {
	for _, check := range [...]func() error{
		c.checkPlaces, c.checkCounts, c.checkGangs, c.checkPlans, c.checkSizes, c.checkResources,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// podCounts are numbers of pods of one workload.
type podCounts struct {
	serving       int32
	reportedReady int32 // the cluster has not noticed yet that some of them are lost
	active        int32 // not terminating
}

// A recount is the scratch memory of the checks. They run after every event and reuse it.
type recount struct {
	nodeOf  []policy.NodeID // by pod; None without a node
	counts  []podCounts     // by workload
	waiting []int32         // by workload, its active pods that do not serve
}

// checkPlaces checks that every pod is on at most one node, the one in its Node.
func (c *Cluster) checkPlaces() error {
	nodeOf := slices.Grow(c.checked.nodeOf[:0], len(c.Pods.All))[:len(c.Pods.All)]
	c.checked.nodeOf = nodeOf
	for p := range nodeOf {
		nodeOf[p] = policy.None
	}
	for i := range c.Nodes.All {
		if c.Nodes.All[i].Phase == policy.NodeGone {
			continue
		}
		for _, p := range c.Space.Pods(policy.NodeID(i)) {
			if nodeOf[p] != policy.None {
				return fmt.Errorf("pod %s is on two nodes, %s and %s", c.Pods.All[p].Name, c.Nodes.All[nodeOf[p]].Name,
					c.Nodes.All[i].Name)
			}
			nodeOf[p] = policy.NodeID(i)
		}
	}
	for i := range c.Pods.All {
		pod := &c.Pods.All[i]
		if pod.Phase == policy.PodGone {
			if nodeOf[i] != policy.None {
				return fmt.Errorf("pod %s is gone, but the space has it on node %d", pod.Name, nodeOf[i])
			}
			continue
		}
		if pod.Node != nodeOf[i] {
			return fmt.Errorf("pod %s has node %d, but the space has it on %d", pod.Name, pod.Node, nodeOf[i])
		}
	}
	return nil
}

// checkCounts checks that the counts of workloads equal the numbers of their pods.
func (c *Cluster) checkCounts() error {
	c.checked.counts = append(c.checked.counts[:0], make([]podCounts, len(c.Workloads.State))...)
	c.checked.waiting = append(c.checked.waiting[:0], make([]int32, len(c.Workloads.State))...)
	for i := range c.Pods.All {
		pod := &c.Pods.All[i]
		w := c.Scenario.Templates[pod.Template].Workload
		count := &c.checked.counts[w]
		ready := pod.Phase == policy.PodReady
		serving := ready && !c.Pods.State[i].Lost
		if ready {
			count.reportedReady++
		}
		if serving {
			count.serving++
		}
		if pod.Phase != policy.PodTerminating && pod.Phase != policy.PodGone {
			count.active++
			if !serving {
				c.checked.waiting[w]++
			}
		}
	}
	for i := range c.Workloads.State {
		if err := c.checkMissing(policy.WorkloadID(i), c.checked.waiting[i]); err != nil {
			return err
		}
		serving := &c.Serving.Of[i]
		own := podCounts{serving: serving.ready, reportedReady: serving.seen, active: c.Workloads.State[i].Active}
		if want := c.checked.counts[i]; own != want {
			return fmt.Errorf("workload %s has the counts %+v, its pods are %+v", c.Scenario.Workloads[i].Name, own, want)
		}
	}
	return nil
}

// checkMissing checks that the missing pods of a service, over all causes, are its pods that do not
// serve and those that replace others and are not yet created, and that they do not exceed the pods
// that it wants.
func (c *Cluster) checkMissing(w policy.WorkloadID, waiting int32) error {
	if !c.Serving.serves(w) {
		return nil
	}
	missing, owed := int32(0), int32(0)
	for cause := range result.OutageCauses {
		if c.Serving.Of[w].Missing[cause] < 0 || c.Workloads.State[w].owed[cause] < 0 {
			return fmt.Errorf("workload %s misses %d pods by %v and owes %d", c.Scenario.Workloads[w].Name,
				c.Serving.Of[w].Missing[cause], result.OutageCause(cause), c.Workloads.State[w].owed[cause])
		}
		missing += c.Serving.Of[w].Missing[cause]
		owed += c.Workloads.State[w].owed[cause]
	}
	if missing != waiting+owed || owed > 0 && c.Workloads.State[w].Active+owed > c.Serving.Of[w].wanted {
		return fmt.Errorf("workload %s misses %d pods; %d do not serve, %d must be replaced, %d of %d exist",
			c.Scenario.Workloads[w].Name, missing, waiting, owed, c.Workloads.State[w].Active, c.Serving.Of[w].wanted)
	}
	return nil
}

// checkResources checks that the requests on no node exceed its allocatable resources.
func (c *Cluster) checkResources() error {
	for i := range c.Nodes.All {
		n := &c.Nodes.All[i]
		if n.Phase == policy.NodeGone {
			continue
		}
		var sum policy.Resources
		for _, p := range c.Space.Pods(n.ID) {
			sum = sum.Plus(c.Scenario.Templates[c.Pods.All[p].Template].Requests)
		}
		if !sum.Within(n.Allocatable) {
			return fmt.Errorf("node %s holds %+v of %+v", n.Name, sum, n.Allocatable)
		}
	}
	return nil
}

// checkPlans checks the plan state of each node.
func (c *Cluster) checkPlans() error {
	for i := range c.Nodes.All {
		n := &c.Nodes.All[i]
		if want := wantedPlan(n); c.Nodes.Plans[i] != want {
			return fmt.Errorf("node %s of phase %v has plan state %d, want %d", n.Name, n.Phase, c.Nodes.Plans[i], want)
		}
	}
	return nil
}

// wantedPlan returns the plan state that n must have.
func wantedPlan(n *policy.Node) Plan {
	switch {
	case !stays(n) || n.NotReady || n.ReclaimAt != 0:
		return PlanWithout
	case n.Phase < policy.NodeInitialized:
		return PlanComing
	}
	return PlanThere
}

// stays reports whether n exists or is launching, and is not being removed.
func stays(n *policy.Node) bool {
	return n.Phase != policy.NodeGone && n.Phase <= policy.NodeInitialized && n.ActedBy == policy.ActorNone
}

// checkSizes checks that the sizes of pools equal the sums over their nodes.
func (c *Cluster) checkSizes() error {
	sizes := make([]PoolSize, len(c.Scenario.Pools))
	for i := range c.Nodes.All {
		n, state := &c.Nodes.All[i], &c.Nodes.State[i]
		if !stays(n) {
			continue
		}
		sizes[n.Pool].Total += state.Size
		if state.Spot {
			sizes[n.Pool].Spot += state.Size
		}
	}
	if !slices.Equal(sizes, c.Nodes.Sizes) {
		return fmt.Errorf("pools have the sizes %v, their nodes are %v", c.Nodes.Sizes, sizes)
	}
	return nil
}

// checkGangs checks that either all pods of a gang work or no pod does, that working pods are
// ready, and that gangs count their existing pods correctly.
func (c *Cluster) checkGangs() error {
	for i := range c.Gangs.All {
		g := &c.Gangs.All[i]
		name := c.Scenario.Gangs[g.gang].Name
		working, unfinished := int32(0), int32(0) // tasks
		for _, job := range g.jobs {
			for k := range c.Jobs.All[job].Tasks {
				task := &c.Jobs.All[job].Tasks[k]
				if task.over {
					continue
				}
				unfinished++
				if task.began == 0 {
					continue
				}
				working++
				if c.Pods.State[task.running].Lost || c.Pods.All[task.running].Phase != policy.PodReady {
					return fmt.Errorf("pod %s of gang %s works and is not ready", c.Pods.All[task.running].Name, name)
				}
			}
		}
		existing := int32(0) // pods
		for id := range c.Pods.All {
			if c.Pods.All[id].Phase != policy.PodGone && c.Pods.State[id].gang == int32(i) {
				existing++
			}
		}
		// While the pods of a gang that finish at the same instant are handled, fewer than all work.
		finishing := g.phase == gangWorking && working == unfinished
		if working != 0 && !finishing {
			return fmt.Errorf("%d of the %d pods of gang %s work", working, unfinished, name)
		}
		if existing != g.alive {
			return fmt.Errorf("gang %s counts %d pods, there are %d", name, g.alive, existing)
		}
	}
	return nil
}

// CheckEviction checks, if checks of invariants are on, that the eviction of a ready pod violates
// none of its PodDisruptionBudgets.
func (c *Cluster) CheckEviction(id policy.PodID) {
	if !c.Check || c.Pods.All[id].Phase != policy.PodReady {
		return
	}
	for _, budget := range c.Scenario.Templates[c.Pods.All[id].Template].PDBs {
		healthy, expected := int32(0), int32(0)
		for i := range c.Pods.All {
			for _, x := range c.Scenario.Templates[c.Pods.All[i].Template].PDBs {
				if x == budget && c.Pods.All[i].Phase == policy.PodReady {
					healthy++
				}
			}
		}
		for _, w := range c.PDBs.of[budget] {
			expected += c.PDBs.expected(w)
		}
		if need := c.Scenario.PDBs[budget].Required(expected); healthy-1 < need {
			c.Fail(fmt.Errorf("evicting %s leaves %d healthy pods of %d that budget %s requires",
				c.Pods.All[id].Name, healthy-1, need, c.Scenario.PDBs[budget].Name))
		}
	}
}
