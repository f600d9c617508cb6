package watch

import (
	"slices"
	"time"
)

// A release is a Spotter release that watches the cluster together with others: of those that lead,
// one acts.
type release struct {
	namespace string
	leads     history[time.Time] // until when its lease holds unless it is renewed; zero once it is given up
	claims    history[bool]      // whether it has claimed any CapacityPool
	last      *Request           // the last that changed more than its own objects
}

// releaseOf returns the release of a namespace, nil where none is watched.
func (w *Watcher) releaseOf(namespace string) *release {
	for _, x := range w.releases {
		if x.namespace == namespace {
			return x
		}
	}
	return nil
}

// renewed takes what a Lease says from now on.
func (w *Watcher) renewed(r *Request) {
	x := w.releaseOf(r.Namespace)
	if x == nil {
		return
	}
	until := r.Until
	if r.Verb == "delete" {
		until = time.Time{}
	}
	x.leads.set(r.Answered, until)
}

// claimed records which release has claimed a CapacityPool from now on; an empty namespace means
// that no release has.
func (w *Watcher) claimed(at time.Time, pool, namespace string) {
	w.claims[pool] = namespace
	has := map[string]bool{}
	for _, owner := range w.claims {
		has[owner] = true
	}
	for _, x := range w.releases {
		if n := len(x.claims.is); n == 0 || x.claims.is[n-1] != has[x.namespace] {
			x.claims.set(at, has[x.namespace])
		}
	}
}

// acts reports whether a request changes more than what a release has for itself: its lease
// and ConfigMaps, Events and reviews.
func (x *release) acts(r *Request) bool {
	switch r.Resource {
	case "events", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews":
		return false
	case "leases", "configmaps":
		return r.Namespace != x.namespace
	}
	return r.Code >= 200 && r.Code < 300 || r.Subresource == "eviction"
}

// alone holds that one release acts at a time: between two acts of different releases there
// is an instant at which the first of the two no longer led or had claimed no pool. One that has
// just claimed its first pool may meet what the other began before.
func (w *Watcher) alone(r *Request) {
	mine := w.releases[r.User]
	if mine == nil || !mine.acts(r) {
		return
	}
	for _, user := range sorted(w.releases) {
		other := w.releases[user]
		if other == mine || other.last == nil {
			continue
		}
		before, after, of := other.last, r, other
		if r.Received.Before(before.Received) {
			before, after, of = r, other.last, mine
		}
		if of.leading(before.Received, after.Answered) && of.owning(earlier(before.Answered.Add(1),
			after.Received.Add(-w.cfg.Grace)), after.Answered) {
			other.last = nil // one finding for one change of the release that acts
			w.find(r.Received, "rival", "%s does %s of %s %s while the release of %s acts, which did %s of %s %s at %v",
				r.User, r.Verb, r.Resource, r.Name, user, before.Verb, before.Resource, before.Name, before.Received.UTC().Format("15:04:05.000"))
		}
	}
	if mine.last == nil || !r.Received.Before(mine.last.Received) {
		mine.last = r
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// owning reports whether x had claimed a pool all the time from from to to.
func (x *release) owning(from, to time.Time) bool {
	all := x.claims.during(from, to)
	return len(all) > 0 && !slices.Contains(all, false)
}

// leading reports whether x led all the time from from to to.
func (x *release) leading(from, to time.Time) bool {
	if len(x.leads.at) == 0 || x.leads.at[0].After(from) {
		return false
	}
	for i, at := range x.leads.at {
		next := to
		if i+1 < len(x.leads.at) {
			next = earlier(to, x.leads.at[i+1])
		}
		if !at.After(to) && !next.Before(from) && x.leads.is[i].Before(next) {
			return false
		}
	}
	return true
}

// Ended takes note that the controllers of a release have ended, and that another of its
// cluster leads and is not hindered.
func (w *Watcher) Ended(at time.Time, namespace string) {
	w.ended[namespace] = at
	w.absent = 2 * w.cfg.Takeover // until the other has its pools, and then until it leads again
}

// Taken holds that of each release that ended no pool is claimed any more once the time for
// that is over, and forgets that they ended.
func (w *Watcher) Taken(at time.Time) {
	for _, namespace := range sorted(w.ended) {
		since := at.Sub(w.ended[namespace])
		for _, pool := range sorted(w.claims) {
			if w.claims[pool] == namespace && since > w.cfg.Takeover {
				w.find(at, "takeover", "CapacityPool %s is claimed by the release of %s, which ended %v ago", pool, namespace,
					since.Round(time.Second))
			}
		}
		delete(w.ended, namespace)
	}
}
