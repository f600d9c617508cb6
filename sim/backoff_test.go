package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// While there is no node a pod is tried ever more rarely, at whole seconds, whatever
// changes; these are the times at which a real one created at five seconds was.
func TestBackoffWithoutNodes(t *testing.T) {
	x := &podState{}
	r := &run{environment: &environment{}}
	r.nodes, r.pods = &nodes{}, &pods{}
	r.queue = &schedulingQueue{environment: r.environment, nodes: r.nodes, pods: r.pods}
	var tried []int
	for r.q.Now = at(5 * time.Second); r.q.Now < at(time.Minute); r.q.Now = r.q.Now.Add(100 * time.Millisecond) {
		if x.due(r.q.Now, true) {
			r.queue.retry(x)
			tried = append(tried, int(r.q.Now.Sub(at(0))/time.Second))
			if r.queue.flushAt != r.q.Now && x.errors > 0 && !x.due(r.queue.flushAt, false) {
				t.Errorf("at %d s a try was planned for a time at which the pod still waits", tried[len(tried)-1])
			}
		}
	}
	if want := []int{5, 7, 10, 15, 24, 35, 46, 57}; !slices.Equal(tried, want) {
		t.Errorf("tried at %v s, want %v", tried, want)
	}
	x.fail(r.q.Now)
	if x.due(r.q.Now, false) || !x.due(r.q.Now, true) {
		t.Error("a pod that some node refused is not tried exactly when something changed")
	}
}

// The queue: by priority and the time of the last try, and those that failed lately
// behind, the first whose backoff ends first.
func TestByQueue(t *testing.T) {
	r := &run{environment: &environment{}}
	r.nodes, r.pods = &nodes{}, &pods{}
	r.queue = &schedulingQueue{environment: r.environment, nodes: r.nodes, pods: r.pods}
	r.scenario = &scenarios.BoundScenario{Templates: []policy.Template{{}, {Priority: 5}}}
	r.q.Now = at(time.Minute)
	ago := func(s int) policy.Time { return r.q.Now.Add(-time.Duration(s) * time.Second) }
	add := func(template policy.TemplateID, created int, tries ...int) {
		x := podState{}
		for _, s := range tries {
			x.fail(ago(s))
		}
		r.pods.all = append(r.pods.all, policy.Pod{Template: template, Created: ago(created)})
		r.pods.state = append(r.pods.state, x)
	}
	add(0, 50, 50, 45, 40, 30, 3) // 0: waits ten seconds after its fifth try
	add(0, 40, 40, 30)            // 1: tried thirty seconds ago
	add(0, 35)                    // 2: new, older than the last try of 1
	add(0, 1)                     // 3: new
	add(1, 1)                     // 4: new and more important
	add(1, 2, 1)                  // 5: more important, waits one second
	order := []policy.PodID{0, 1, 2, 3, 4, 5}
	slices.SortFunc(order, r.queue.byQueue())
	if want := []policy.PodID{4, 2, 1, 3, 5, 0}; !slices.Equal(order, want) {
		t.Errorf("the queue is %v, want %v", order, want)
	}
}
