package engine

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
)

// A Kind says what happens at an event. Events at one instant happen in
// the order of their kinds' ranks, then in the order in which they were added:
// first what the cluster and the market do, then the scheduler and the provisioner, which work
// on all of it, and last the policy, which sees the result.
type Kind uint8

// The kinds of events, in the order in which those of one instant are taken.
const (
	MeteringBegins     Kind = iota // metering starts
	FaultChanges                   // fault a starts or ends
	CommitmentEnds                 // commitment a ends
	ReplicasChange                 // workload a reaches step b of its schedule
	RollsOut                       // workload a rolls out a new version
	GrowthCounts                   // a growth of workload a starts to count
	PodsRetried                    // workload a tries again to make pods that a gate denied
	JobReleased                    // job a releases instance b
	JobDue                         // job instance a is due
	NodeRegistered                 // node a joins
	NodeInitialized                // node a is ready for pods
	NodeNotice                     // node a is given notice, of being outbid if b
	NodeRecommendation             // node a gets a rebalance recommendation
	NodeReclaimed                  // node a is taken
	NodeGone                       // node a's object goes away
	PodsWritten                    // the ReplicaSet controller makes or deletes pods
	PodReady                       // pod a is ready
	PodGone                        // pod a has terminated
	PodFinished                    // pod a has done its work
	PodUnprotected                 // the do-not-disrupt of pod a ends
	GangTimer                      // a timer of gang a, of kind b
	DrainContinues                 // drain a continues
	NodeExpires                    // node a reaches the pool's expireAfter
	GroupFills                     // group a launches what it is missing
	ReplicasFill                   // static pool a launches what it is missing
	Schedule                       // the scheduler tries the pending pods
	Provision                      // the provisioner's batch window closes
	ClaimGone                      // the instance of a NodeClaim has shut down
	Disrupt                        // the provisioner looks for savings
	Scan                           // the Cluster Autoscaler looks at the cluster
	Step                           // the policy decides

	kinds = iota
)

// An Event is something that happens at one instant. It is a value: a queue of
// them allocates only to grow.
type Event struct {
	At   policy.Time
	rank uint64 // kind, then order of adding

	// A and B say what it happens to. Gen is the generation of the slot A, by which
	// an event of a past owner of the slot is known.
	A, B int32
	Gen  int32
}

// Kind returns what happens.
func (e *Event) Kind() Kind { return Kind(e.rank >> 56) }

func (e *Event) before(x *Event) bool {
	if e.At != x.At {
		return e.At < x.At
	}
	return e.rank < x.rank
}

// A Queue holds the events still to come, and is the clock of a run. It is a
// 4-ary heap: half as deep as a binary one, with children on one cache line.
type Queue struct {
	Now  policy.Time
	seq  uint64
	heap []Event

	carriers [kinds]func(*Event)
}

// Add plans an event. An instant in the past is a bug of the caller: it would
// make time run backwards.
func (q *Queue) Add(at policy.Time, kind Kind, a, b, gen int32) {
	if at < q.Now {
		panic(fmt.Sprintf("engine: event %d at %v is before now, %v", kind, at, q.Now))
	}
	q.seq++
	q.heap = append(q.heap, Event{At: at, rank: uint64(kind)<<56 | q.seq, A: a, B: b, Gen: gen})
	h, i := q.heap, len(q.heap)-1
	e := h[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

// Next takes the earliest event up to and including end, and moves the clock to it. It reports
// false, with the clock at end, when there is no event.
func (q *Queue) Next(end policy.Time) (Event, bool) {
	if len(q.heap) == 0 || q.heap[0].At > end {
		q.Now = end
		return Event{}, false
	}
	h := q.heap
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	q.heap = h
	q.Now = first.At
	if len(h) == 0 {
		return first, true
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&last) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return first, true
}

// Following returns when the next event is, and whether there is one.
func (q *Queue) Following() (policy.Time, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].At, true
}

// On has f carry out the events of a kind.
func (q *Queue) On(kind Kind, f func(*Event)) { q.carriers[kind] = f }

// CarryOut calls what [Queue.On] set for the kind of an event. An event that only marks an instant
// has nothing to call.
func (q *Queue) CarryOut(e *Event) {
	if f := q.carriers[e.Kind()]; f != nil {
		f(e)
	}
}
