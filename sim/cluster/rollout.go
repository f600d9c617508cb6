package cluster

import (
	"github.com/spotter-dev/spotter/policy"
)

// rolledShare is the divisor for the default limits of a Deployment's rollout: up to a quarter of
// the wanted pods, rounded up, are created in addition, and up to a quarter, rounded down, may be
// unavailable (pkg/apis/apps/v1/defaults.go and pkg/controller/deployment/util of Kubernetes 1.35,
// ResolveFenceposts).
const rolledShare = 4

// rolling returns by how many pods a rollout of w may now exceed the wanted number, and by how many
// ready pods it may fall below it. Both are 0 without a rollout.
func (wl *Workloads) rolling(w policy.WorkloadID) (more, fewer int32) {
	if wl.State[w].old == 0 {
		return 0, 0
	}
	want := wl.Serving.Of[w].wanted
	return (want + rolledShare - 1) / rolledShare, want / rolledShare
}

// rollOut starts a rollout that replaces all pods of a Deployment.
func (wl *Workloads) rollOut(w policy.WorkloadID) {
	ws := &wl.State[w]
	ws.version++
	ws.old = ws.Active
	wl.Serving.setRequired(w)
	wl.reconcile(w)
}

// roll takes the steps of a rollout that are allowed now: it creates new pods up to the maximum
// surge, and deletes old pods, unready ones first, while enough pods stay ready
// (pkg/controller/deployment/rolling.go). If fewer pods are wanted than when the rollout started,
// it deletes pods of any version.
func (wl *Workloads) roll(w policy.WorkloadID) {
	ws, g := &wl.State[w], &wl.Serving.Of[w]
	more, fewer := wl.rolling(w)
	for ws.Active < g.wanted+more && ws.Active-ws.old < g.wanted {
		if wl.GPUBudgets.shut(w) {
			wl.deny(w)
			break
		}
		wl.Queue.enqueue(wl.Pods.add(w))
	}
	if ws.shrinking {
		return
	}
	if n := ws.Active - g.wanted - more; n > 0 {
		wl.scaleDown(w, n, false)
	}
	unready, spare := wl.unreadyOld(w), g.seen-(g.wanted-fewer)
	n := max(0, min(unready, spare+unready))
	if n += max(0, min(ws.old-n, spare)); n > 0 {
		wl.scaleDown(w, n, true)
	}
}

// unreadyOld counts the pods of old versions of w that are neither ready nor terminating.
func (wl *Workloads) unreadyOld(w policy.WorkloadID) (n int32) {
	for _, id := range wl.State[w].pods {
		if phase := wl.Pods.All[id].Phase; wl.old(id) && phase != policy.PodTerminating && phase != policy.PodReady {
			n++
		}
	}
	return n
}

// old reports whether a pod has an older version than its workload, so that a rollout replaces it.
func (wl *Workloads) old(id policy.PodID) bool {
	return wl.Pods.State[id].version != wl.State[wl.Scenario.Templates[wl.Pods.All[id].Template].Workload].version
}
