// Package watch judges a controller by what the API server shows of it: objects as they
// change, and the audit log. It knows the words of the API and nothing of the program that
// it watches, and runs in a process of its own.
//
// A [Watcher] takes what was seen, in order, and keeps [Finding]s: what no controller may
// do at any instant.
package watch

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The words of the API.
const (
	annotationDrain     = "spotter.dev/drain"
	annotationCordon    = "spotter.dev/cordon"
	annotationProtected = "spotter.dev/protected"
	annotationSwitch    = "spotter.dev/kill-switch"
	annotationLaunch    = "spotter.dev/launch-token"
	taintDraining       = "spotter.dev/draining"
	annotationKeep      = "karpenter.sh/do-not-disrupt"
	labelNodePool       = "karpenter.sh/nodepool"
	modeActive          = "active"
)

// noticeTaints are how a provider says that it takes a node.
var noticeTaints = []string{"cloud.google.com/impending-node-termination", "aws-node-termination-handler/spot-itn"}

// A Config says whom a watcher watches.
type Config struct {
	// Releases are the namespaces of the controllers' leases, by their users at the API server.
	Releases map[string]string

	// Lease is the name of each of these leases.
	Lease string

	// Namespace and KillSwitch name the ConfigMap that stops everything.
	Namespace, KillSwitch string

	// PoolLabel is the label of nodes and pods that names their CapacityPool.
	PoolLabel string

	// Grace is how long after a mode or the switch has changed the controller may still
	// act by what was before.
	Grace time.Duration

	// Quiet is how long after its last progress a mark may stand.
	Quiet time.Duration

	// Takeover is how long after a release has ended its pools may still be claimed by it: two
	// leases, as another has to see that its lease is not renewed, a step and the time of grace.
	Takeover time.Duration

	// Launch is how old a NodeClaim must be before it is given up for having no machine.
	Launch time.Duration
}

// DefaultConfig returns what is promised.
func DefaultConfig() Config {
	return Config{
		Releases: map[string]string{"spotter": "spotter"}, Lease: "spotter-leader", KillSwitch: "spotter-kill-switch", PoolLabel: "team",
		Grace: 2 * time.Second, Quiet: time.Minute, Takeover: 37 * time.Second, Launch: time.Minute,
	}
}

// A Finding is something that must not happen and did.
type Finding struct {
	At   time.Time
	Rule string // budget, stop, mark, pdb, delete, ledger, keep, release, rival, takeover or launch
	What string
}

// String returns the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s %s: %s", f.At.UTC().Format("15:04:05.000"), f.Rule, f.What)
}

// A Watcher holds what was seen. It is used by one goroutine.
type Watcher struct {
	cfg      Config
	findings []Finding

	// drains and asked count what was judged at all: Spotter's drains that started without a
	// notice, and the evictions that it requested.
	drains, asked int

	nodes  map[string]*Node
	pods   map[string]*Pod
	pools  map[string]*history[pool]       // CapacityPools
	limits map[string]*history[allowances] // NodePools
	off    history[bool]                   // the kill switch
	pdbs   map[string]*pdb

	progress  map[string]time.Time // by node, when an eviction there was requested
	evictions []eviction
	others    []loss // pods that others took
	uses      map[string]*use
	gaps      []gap
	booked    []booking            // what ledgers said and is not judged yet
	unread    []gap                // when the kill switch cannot be read
	leaving   map[string]time.Time // pods that were evicted or deleted, by when

	releases map[string]*release  // by user
	claims   map[string]string    // by CapacityPool, the namespace of the release that may change it
	ended    map[string]time.Time // by namespace, when its release ended
	absent   time.Duration        // how much longer than any replica a release may have been without one that leads
}

// New returns a watcher that has seen nothing.
func New(cfg Config) *Watcher {
	w := &Watcher{
		cfg: cfg, nodes: map[string]*Node{}, pods: map[string]*Pod{}, pools: map[string]*history[pool]{}, limits: map[string]*history[allowances]{},
		pdbs: map[string]*pdb{}, progress: map[string]time.Time{}, uses: map[string]*use{}, leaving: map[string]time.Time{},
		releases: map[string]*release{}, claims: map[string]string{}, ended: map[string]time.Time{},
	}
	for user, namespace := range cfg.Releases {
		w.releases[user] = &release{namespace: namespace}
	}
	return w
}

// Findings returns what was found so far, in the order of time.
func (w *Watcher) Findings() []Finding {
	slices.SortStableFunc(w.findings, func(a, b Finding) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	return slices.Clone(w.findings)
}

func (w *Watcher) find(at time.Time, rule, format string, args ...any) {
	w.findings = append(w.findings, Finding{at, rule, fmt.Sprintf(format, args...)})
}

// A history is a value over time, by when each came to hold.
type history[T any] struct {
	at []time.Time
	is []T
}

func (h *history[T]) set(at time.Time, v T) {
	h.at, h.is = append(h.at, at), append(h.is, v)
}

// during returns what held at some instant in [from, to].
func (h *history[T]) during(from, to time.Time) (all []T) {
	for i := range h.at {
		if !h.at[i].After(to) && (i+1 == len(h.at) || !h.at[i+1].Before(from)) {
			all = append(all, h.is[i])
		}
	}
	return all
}

func keyed[T any](m map[string]*history[T], key string) *history[T] {
	h, ok := m[key]
	if !ok {
		h = &history[T]{}
		m[key] = h
	}
	return h
}
