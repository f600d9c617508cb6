package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/setup"
	"github.com/spotter-dev/spotter/sim/simtest"
)

// While there is no node a pod is tried ever more rarely, at whole seconds, whatever
// changes; these are the times at which a real one created at five seconds was.
func TestBackoffWithoutNodes(t *testing.T) {
	x := &PodState{}
	c := &Cluster{Run: &setup.Run{Clock: &engine.Queue{}}}
	c.Nodes, c.Pods, c.Queue = &Nodes{Cluster: c}, &Pods{Cluster: c}, &SchedulingQueue{Cluster: c}
	var tried []int
	for c.Clock.Now = simtest.Start.Add(5 * time.Second); c.Clock.Now < simtest.Start.Add(time.Minute); c.Clock.Now = c.Clock.Now.Add(100 * time.Millisecond) {
		if x.due(c.Clock.Now, true) {
			c.Queue.retry(x)
			tried = append(tried, int(c.Clock.Now.Sub(simtest.Start)/time.Second))
			if c.Queue.flushAt != c.Clock.Now && x.errors > 0 && !x.due(c.Queue.flushAt, false) {
				t.Errorf("at %d s a try was planned for a time at which the pod still waits", tried[len(tried)-1])
			}
		}
	}
	if want := []int{5, 7, 10, 15, 24, 35, 46, 57}; !slices.Equal(tried, want) {
		t.Errorf("tried at %v s, want %v", tried, want)
	}
	x.fail(c.Clock.Now)
	if x.due(c.Clock.Now, false) || !x.due(c.Clock.Now, true) {
		t.Error("a pod that some node refused is not tried exactly when something changed")
	}
}

// The queue: by priority and the time of the last try, and those that failed lately
// behind, the first whose backoff ends first.
func TestByQueue(t *testing.T) {
	c := &Cluster{Run: &setup.Run{Clock: &engine.Queue{}}}
	c.Nodes, c.Pods, c.Queue = &Nodes{Cluster: c}, &Pods{Cluster: c}, &SchedulingQueue{Cluster: c}
	c.Scenario = &scenarios.BoundScenario{Templates: []policy.Template{{}, {Priority: 5}}}
	c.Clock.Now = simtest.Start.Add(time.Minute)
	ago := func(s int) policy.Time { return c.Clock.Now.Add(-time.Duration(s) * time.Second) }
	add := func(template policy.TemplateID, created int, tries ...int) {
		x := PodState{}
		for _, s := range tries {
			x.fail(ago(s))
		}
		c.Pods.All = append(c.Pods.All, policy.Pod{Template: template, Created: ago(created)})
		c.Pods.State = append(c.Pods.State, x)
	}
	add(0, 50, 50, 45, 40, 30, 3) // 0: waits ten seconds after its fifth try
	add(0, 40, 40, 30)            // 1: tried thirty seconds ago
	add(0, 35)                    // 2: new, older than the last try of 1
	add(0, 1)                     // 3: new
	add(1, 1)                     // 4: new and more important
	add(1, 2, 1)                  // 5: more important, waits one second
	order := []policy.PodID{0, 1, 2, 3, 4, 5}
	slices.SortFunc(order, c.Queue.byQueue())
	if want := []policy.PodID{4, 2, 1, 3, 5, 0}; !slices.Equal(order, want) {
		t.Errorf("the queue is %v, want %v", order, want)
	}
}
