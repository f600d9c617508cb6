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
}

// An eviction is one of ours that the API server let through.
type eviction struct {
	at  time.Time
	pod Pod
}

// A loss is a pod that somebody else took.
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
	ours := r.User == w.cfg.User
	pod, known := w.pods[r.Namespace+"/"+r.Name]
	switch {
	case r.Resource == "pods" && r.Subresource == "eviction" && ours:
		w.asked++
		if known {
			w.stopped(r, pod)
			w.progress[pod.Node] = r.Answered
			if done {
				w.evictions = append(w.evictions, eviction{r.Answered, *pod})
			}
		}
	case r.Resource == "pods" && r.Subresource == "" && r.Verb == "delete" && ours && done:
		w.find(r.Received, "delete", "pod %s/%s is deleted, which no disruption budget is asked about", r.Namespace, r.Name)
	case r.Resource == "pods" && done && known && (r.Verb == "delete" && r.Subresource == "" || r.Subresource == "eviction"):
		w.others = append(w.others, loss{r.Answered, *pod})
	case r.Resource == "capacitypools" && r.Subresource == "" && done:
		p := pool{r.Mode, r.Budget}
		if r.Verb == "delete" {
			p = pool{}
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
		w.find(r.Received, "stop", "the eviction of %s/%s is requested though its pool %s is %s", r.Namespace, r.Name, name, mode)
	}
}
