package cluster

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
)

// podWrites are the pending writes of the ReplicaSet controller, if [Delays] limit their rate.
// Workloads take turns, because the workers of the controller share one client.
type podWrites struct {
	work []policy.WorkloadID // workloads with pending writes
	turn int
	next policy.Time // earliest time of the next write if no burst were allowed
}

// A doomedPod is a pod that its controller deletes. gen is the generation of its slot.
type doomedPod struct {
	id  policy.PodID
	gen int32
}

// writing reports whether the controller has pending writes for a workload.
func (w *WorkState) writing() bool { return w.missing > 0 || len(w.doomed) > 0 }

// writeLater queues the pending writes of a workload, which start at this instant.
func (wl *Workloads) writeLater(w policy.WorkloadID) {
	if wl.writes.work = append(wl.writes.work, w); len(wl.writes.work) == 1 {
		wl.Clock.Add(wl.Clock.Now, engine.PodsWritten, 0, 0, 0)
	}
}

// write makes as many pending writes as the rate allows now.
func (wl *Workloads) write() {
	x := &wl.writes
	every := time.Second / time.Duration(wl.Delays.PodWrites)
	ahead := every * time.Duration(max(wl.Delays.PodWritesBurst-1, 0))
	for len(x.work) > 0 {
		if at := x.next.Add(-ahead); at > wl.Clock.Now {
			wl.Clock.Add(at, engine.PodsWritten, 0, 0, 0)
			return
		}
		x.next = max(x.next, wl.Clock.Now).Add(every)
		x.turn %= len(x.work)
		w := x.work[x.turn]
		if wl.writeOne(w); wl.State[w].writing() {
			x.turn++
			continue
		}
		x.work = append(x.work[:x.turn], x.work[x.turn+1:]...)
		wl.reconcile(w)
	}
}

// writeOne creates or deletes one pod of a workload with pending writes.
func (wl *Workloads) writeOne(w policy.WorkloadID) {
	ws := &wl.State[w]
	if ws.missing > 0 {
		if made := wl.add(w); made {
			ws.missing--
		} else {
			ws.missing = 0
		}
		return
	}
	if p := ws.doomed[0]; wl.Pods.State[p.id].gen == p.gen {
		wl.Pods.delete(p.id, policy.EndScaled)
	}
	ws.doomed = ws.doomed[1:]
}
