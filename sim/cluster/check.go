package cluster

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/result"
)

// CheckAll checks the invariants of the cluster. It counts everything again in the simplest way,
// and shares no code with the functions that it checks.
func (c *Cluster) CheckAll() error {
	for _, check := range [...]func() error{c.checkPods, c.checkGangs, c.checkPlans, c.checkNodes} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// podCounts are numbers of pods of one workload: pods that serve, pods that the cluster takes for
// ready, pods that are not terminating, and, of the latter, pods that do not serve.
type podCounts struct{ ready, seen, active, waiting int32 }

// A recount is the scratch memory of the checks. They run after every event and reuse it.
type recount struct {
	on     []policy.NodeID // by pod, its node's id plus one; 0 without a node
	counts []podCounts     // by workload
}

// checkPods checks that every pod is on at most one node, and that the counts of workloads equal
// the numbers of their pods.
func (c *Cluster) checkPods() error {
	c.checked.on = append(c.checked.on[:0], make([]policy.NodeID, len(c.Pods.All))...)
	on := c.checked.on
	for i := range c.Nodes.All {
		if c.Nodes.All[i].Phase == policy.NodeGone {
			continue
		}
		for _, p := range c.Space.Pods(policy.NodeID(i)) {
			if on[p] != 0 {
				return fmt.Errorf("pod %s is on two nodes, %s and %s", c.Pods.All[p].Name, c.Nodes.All[on[p]-1].Name,
					c.Nodes.All[i].Name)
			}
			on[p] = policy.NodeID(i) + 1
		}
	}
	c.checked.counts = append(c.checked.counts[:0], make([]podCounts, len(c.Workloads.State))...)
	counts := c.checked.counts
	for i := range c.Pods.All {
		p := &c.Pods.All[i]
		n, bound := on[i]-1, on[i] != 0
		if p.Phase == policy.PodGone {
			if bound {
				return fmt.Errorf("a pod that is gone holds a place on %s", c.Nodes.All[n].Name)
			}
			continue
		}
		if bound != (p.Node != policy.None) || bound && n != p.Node {
			return fmt.Errorf("pod %s says that it is on node %d, the space that it is on %d (%v)", p.Name, p.Node, n, bound)
		}
		k := &counts[c.Scenario.Templates[p.Template].Workload]
		if p.Phase == policy.PodReady {
			k.seen++
			if !c.Pods.State[i].Lost {
				k.ready++
			}
		}
		if p.Phase != policy.PodTerminating {
			k.active++
			if p.Phase != policy.PodReady || c.Pods.State[i].Lost {
				k.waiting++
			}
		}
	}
	for i := range c.Workloads.State {
		if err := c.checkMissing(policy.WorkloadID(i), counts[i].waiting); err != nil {
			return err
		}
		if own := (podCounts{c.Serving.Of[i].ready, c.Serving.Of[i].seen, c.Workloads.State[i].Active,
			counts[i].waiting}); own != counts[i] {
			return fmt.Errorf("workload %s counts %d ready, %d seen as ready and %d active pods, there are %d, %d and %d",
				c.Scenario.Workloads[i].Name, own.ready, own.seen, own.active, counts[i].ready, counts[i].seen, counts[i].active)
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

// checkNodes checks that the requests on no node exceed its allocatable resources.
func (c *Cluster) checkNodes() error {
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

// checkPlans checks the sizes of pools, and how Karpenter plans with each node, against the nodes.
func (c *Cluster) checkPlans() error {
	sizes := make([]PoolSize, len(c.Scenario.Pools))
	for i := range c.Nodes.All {
		n, x, want := &c.Nodes.All[i], &c.Nodes.State[i], PlanWithout
		if n.Phase != policy.NodeGone && n.Phase <= policy.NodeInitialized && n.ActedBy == policy.ActorNone {
			sizes[n.Pool].Total += x.Size
			if x.Spot {
				sizes[n.Pool].Spot += x.Size
			}
			if want = PlanThere; n.Phase < policy.NodeInitialized {
				want = PlanComing
			}
			if n.NotReady || n.ReclaimAt != 0 {
				want = PlanWithout
			}
		}
		if c.Nodes.Plans[i] != want {
			return fmt.Errorf("node %s of phase %v is planned with as %d, want %d", n.Name, n.Phase, c.Nodes.Plans[i], want)
		}
	}
	if !slices.Equal(sizes, c.Nodes.Sizes) {
		return fmt.Errorf("pools count %v, their nodes are %v", c.Nodes.Sizes, sizes)
	}
	return nil
}

// CheckEviction checks, if checks of invariants are on, that the eviction of a ready pod violates
// none of its PodDisruptionBudgets.
func (c *Cluster) CheckEviction(id policy.PodID) {
	if !c.Check || c.Pods.All[id].Phase != policy.PodReady {
		return
	}
	for _, b := range c.Scenario.Templates[c.Pods.All[id].Template].PDBs {
		healthy, expected := int32(0), int32(0)
		for i := range c.Pods.All {
			t := &c.Scenario.Templates[c.Pods.All[i].Template]
			for _, x := range t.PDBs {
				if x == b && c.Pods.All[i].Phase == policy.PodReady {
					healthy++
				}
			}
		}
		for _, w := range c.PDBs.of[b] {
			expected += c.PDBs.expected(w)
		}
		if need := c.Scenario.PDBs[b].Required(expected); healthy-1 < need {
			c.Fail(fmt.Errorf("evicting %s leaves %d healthy pods of %d that budget %s requires",
				c.Pods.All[id].Name, healthy-1, need, c.Scenario.PDBs[b].Name))
		}
	}
}

// checkGangs checks that either all pods of a gang work or no pod does, that working pods are
// ready, and that gangs count their existing pods correctly.
func (c *Cluster) checkGangs() error {
	for i := range c.Gangs.All {
		g := &c.Gangs.All[i]
		name, working, left, alive := c.Scenario.Gangs[g.gang].Name, int32(0), int32(0), int32(0)
		for _, job := range g.jobs {
			for k := range c.Jobs.All[job].Tasks {
				t := &c.Jobs.All[job].Tasks[k]
				if t.over {
					continue
				}
				left++
				if t.began == 0 {
					continue
				}
				working++
				if x := &c.Pods.State[t.running]; x.Lost || c.Pods.All[t.running].Phase != policy.PodReady {
					return fmt.Errorf("pod %s of gang %s works and is not ready", c.Pods.All[t.running].Name, name)
				}
			}
		}
		for id := range c.Pods.All {
			if c.Pods.All[id].Phase != policy.PodGone && c.Pods.State[id].gang == int32(i) {
				alive++
			}
		}
		// Pods that finish at the same instant are handled one after the other.
		done := g.phase == gangWorking && working == left
		if working != 0 && !done {
			return fmt.Errorf("%d of the %d pods of gang %s work", working, left, name)
		}
		if alive != g.alive {
			return fmt.Errorf("gang %s counts %d pods, there are %d", name, g.alive, alive)
		}
	}
	return nil
}
