package cluster

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
)

// podWrites are what the ReplicaSet controller has yet to write, where [Delays] bound how fast
// it does: workloads take turns, as its workers share one client.
type podWrites struct {
	work []policy.WorkloadID // those with something to write
	turn int
	next policy.Time // when the next write would be, had none been made in a burst
}

// A doomedPod is one that its controller deletes; gen is that of its slot.
type doomedPod struct {
	id  policy.PodID
	gen int32
}

// writing reports whether the controller has pods of a workload to write.
func (w *WorkState) writing() bool { return w.missing > 0 || len(w.doomed) > 0 }

// writeLater has the controller write what it has for a workload, from this instant on.
func (wl *Workloads) writeLater(w policy.WorkloadID) {
	if wl.writes.work = append(wl.writes.work, w); len(wl.writes.work) == 1 {
		wl.Clock.Add(wl.Clock.Now, engine.PodsWritten, 0, 0, 0)
	}
}

// write writes as many pods as may be written now.
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

// writeOne makes or deletes one pod of a workload, which has it to write until then.
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
