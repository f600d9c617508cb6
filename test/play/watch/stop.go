package watch

import (
	"slices"
	"time"
)

// A Request is one that the API server has answered, from the audit log.
type Request struct {
	Received, Answered time.Time
	User, Verb         string

	Group, Resource, Subresource, Namespace, Name string

	DryRun bool
	Code   int

	// What it left of a CapacityPool or a ConfigMap.
	Mode, Budget string
	Annotations  map[string]string

	// Controller is the namespace of the release that has claimed a CapacityPool, and Until
	// when a Lease runs out; zero when it is given up.
	Controller string
	Until      time.Time
}

// An eviction is one that Spotter requested and the API server allowed.
type eviction struct {
	at  time.Time
	pod Pod
}

// A loss is a pod that was removed by an actor other than Spotter.
type loss struct {
	at  time.Time
	pod Pod
}

// Request takes an answered request.
func (w *Watcher) Request(r *Request) {
	if r.DryRun {
		return
	}
	done := r.Code >= 200 && r.Code < 300
	ours := w.releases[r.User] != nil
	w.alone(r)
	pod, known := w.pods[r.Namespace+"/"+r.Name]
	switch {
	case r.Resource == "pods" && r.Subresource == "eviction" && ours:
		w.asked++
		if known {
			w.stopped(r, pod)
			w.kept(r, pod)
			w.progress[pod.Node] = r.Answered
			if done {
				w.evictions = append(w.evictions, eviction{r.Answered, *pod})
				w.leaving[pod.key()] = r.Answered
			}
		}
	case r.Resource == "pods" && r.Subresource == "" && r.Verb == "delete" && ours && done:
		w.find(r.Received, "delete", "pod %s/%s is deleted, which no disruption budget is asked about", r.Namespace, r.Name)
	case r.Resource == "pods" && done && known && (r.Verb == "delete" && r.Subresource == "" || r.Subresource == "eviction"):
		w.others = append(w.others, loss{r.Answered, *pod})
		w.leaving[pod.key()] = r.Answered
	case (r.Resource == "nodes" || r.Resource == "nodeclaims") && r.Subresource == "" && r.Verb == "delete" && ours && done:
		w.early(r)
		w.released(r)
	case r.Resource == "leases" && r.Name == w.cfg.Lease && done:
		w.renewed(r)
	case r.Resource == "capacitypools" && r.Subresource == "status" && done:
		w.claimed(r.Answered, r.Name, r.Controller)
	case r.Resource == "capacitypools" && r.Subresource == "" && done:
		p := pool{r.Mode, r.Budget}
		if r.Verb == "delete" {
			p = pool{}
			w.claimed(r.Answered, r.Name, "")
		}
		if r.Verb == "delete" || r.Mode != "" {
			keyed(w.pools, r.Name).set(r.Answered, p)
		}
	case r.Resource == "configmaps" && r.Namespace == w.cfg.Namespace && r.Name == w.cfg.KillSwitch && done && r.Verb != "delete":
		w.off.set(r.Answered, r.Annotations[annotationSwitch] != "false")
	}
}

// stopped holds that an eviction was allowed at some instant of the time of grace before
// it was sent.
func (w *Watcher) stopped(r *Request, p *Pod) {
	from, to := r.Received.Add(-w.cfg.Grace), r.Answered
	if all := w.off.during(from, to); len(all) > 0 && !slices.Contains(all, false) {
		w.find(r.Received, "stop", "the eviction of %s/%s is requested though the kill switch is on", r.Namespace, r.Name)
	}
	for _, g := range w.unread {
		if r.Received.After(g.from.Add(w.cfg.Grace)) && r.Received.Before(g.to) {
			w.find(r.Received, "stop", "the eviction of %s/%s is requested though the kill switch cannot be read",
				r.Namespace, r.Name)
		}
	}
	name := p.Pool
	if n := w.nodes[p.Node]; n != nil && n.Pool != "" {
		name = n.Pool
	}
	if name == "" {
		return
	}
	all := keyed(w.pools, name).during(from, to)
	if len(all) > 0 && !slices.ContainsFunc(all, func(x pool) bool { return x.mode == modeActive }) {
		mode := all[len(all)-1].mode
		if mode == "" {
			mode = "deleted"
		}
		w.find(r.Received, "stop", "the eviction of %s/%s is requested though its pool %s is %s", r.Namespace, r.Name,
			name, mode)
	}
}

// Unread takes note that no replica can read the kill switch from now on, for as long as said.
func (w *Watcher) Unread(at time.Time, d time.Duration) {
	w.unread = append(w.unread, gap{at, at.Add(d)})
}

// kept holds that no pod is evicted that its owner wanted left alone for longer than the time of grace, but from a node
// that goes.
func (w *Watcher) kept(r *Request, p *Pod) {
	n := w.nodes[p.Node]
	if p.Kept && r.Received.Sub(p.keptSince) > w.cfg.Grace && n != nil && !n.Notice && !n.Going {
		w.find(r.Received, "keep", "the eviction of %s/%s is requested though it carries %s since %v", r.Namespace, r.Name,
			annotationKeep, p.keptSince.UTC().Format("15:04:05.000"))
	}
}

// released holds that no node is released, by its own name or by its NodeClaim's, while it has a
// pod that would have to move to another node, unless the provider takes the node or it is being
// deleted.
func (w *Watcher) released(r *Request) {
	name := r.Name
	if r.Resource == "nodeclaims" {
		claim := w.nodes[claimPrefix+name]
		if claim == nil || claim.Going {
			return
		}
		name = claim.Host
	}
	n := w.nodes[name]
	if n == nil || n.Notice || n.Going {
		return
	}
	for _, key := range sorted(w.pods) {
		if p := w.pods[key]; p.Node == name && !p.Stays && w.leaving[key].IsZero() {
			w.find(r.Received, "release", "node %s is given back with the pod %s on it", name, key)
		}
	}
}

// early holds that no launch is given up before its time, unless it got a machine or another
// deletes it.
func (w *Watcher) early(r *Request) {
	claim := w.nodes[claimPrefix+r.Name]
	if r.Resource != "nodeclaims" || claim == nil || !claim.Launch || claim.Going {
		return
	}
	if age := r.Received.Sub(claim.Created); age < w.cfg.Launch-w.cfg.Grace {
		w.find(r.Received, "launch", "NodeClaim %s is given up without a machine %v after it was made", r.Name,
			age.Round(time.Second))
	}
}
