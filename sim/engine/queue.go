package engine

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
)

// A Kind is a kind of event. Events at the same instant are handled in the order of their kinds,
// then in the order in which they were added: first those of the cluster and the market, then the
// scheduler and the provisioner, which handle all of these, and last the policy, which observes the
// result.
type Kind uint8

// The kinds of events, in the order in which events at the same instant are handled.
const (
	MeteringBegins     Kind = iota // metering starts
	FaultChanges                   // fault a starts or ends
	CommitmentEnds                 // commitment a ends
	ReplicasChange                 // workload a reaches step b of its schedule
	RollsOut                       // workload a rolls out a new version
	GrowthCounts                   // earlier growth of workload a starts to count as desired
	PodsRetried                    // workload a tries again to create pods that a gate denied
	JobReleased                    // job a releases instance b
	JobDue                         // job instance a is due
	NodeRegistered                 // the kubelet of node a registers
	NodeInitialized                // node a is ready for pods
	NodeNotice                     // node a gets a notice, because it is outbid if b is 1
	NodeRecommendation             // node a gets a rebalance recommendation
	NodeReclaimed                  // the provider takes node a
	NodeGone                       // the object of node a is removed
	PodsWritten                    // the ReplicaSet controller creates or deletes pods
	PodReady                       // pod a is ready
	PodGone                        // pod a has terminated
	PodFinished                    // pod a has done its work
	PodUnprotected                 // the do-not-disrupt annotation of pod a ends
	GangTimer                      // a timer of gang a, of kind b
	QueueCycle                     // Kueue tries the workloads at the heads of its queues
	DrainContinues                 // drain a continues
	NodeExpires                    // node a reaches the pool's expireAfter
	GroupFills                     // group a launches its missing instances
	ReplicasFill                   // static pool a launches its missing nodes
	Schedule                       // the scheduler tries the pending pods
	Provision                      // the provisioner's batch window closes
	ClaimGone                      // the instance of a NodeClaim has shut down
	Disrupt                        // the provisioner evaluates disruption
	Scan                           // the Cluster Autoscaler evaluates the cluster
	Step                           // the policy decides

	kinds = iota
)

// An Event is something that happens at one instant. It is a value, so a queue allocates memory
// only when it grows.
type Event struct {
	At   policy.Time
	rank uint64 // kind, then sequence number

	// A and B are the arguments of the event. Gen is the generation of slot A, which identifies
	// events of a past owner of the slot.
	A, B int32
	Gen  int32
}

// Kind returns the kind of the event.
func (e *Event) Kind() Kind { return Kind(e.rank >> 56) }

func (e *Event) before(x *Event) bool {
	if e.At != x.At {
		return e.At < x.At
	}
	return e.rank < x.rank
}

// A Queue contains the future events, and is the clock of a run. It is a 4-ary heap: half as deep
// as a binary one, with sibling nodes close together in memory.
type Queue struct {
	Now  policy.Time
	seq  uint64
	heap []Event

	carriers [kinds]func(*Event)
}

// Add adds an event. It panics if at is in the past.
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

// Next removes the earliest event at or before end, and advances the clock to it. If there is no
// such event, it returns false and sets the clock to end.
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

// Following returns the time of the next event, and whether there is one.
func (q *Queue) Following() (policy.Time, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].At, true
}

// On sets the handler of a kind of events.
func (q *Queue) On(kind Kind, f func(*Event)) { q.carriers[kind] = f }

// CarryOut calls the handler that [Queue.On] set for the kind of an event. An event that only marks
// an instant has no handler.
func (q *Queue) CarryOut(e *Event) {
	if f := q.carriers[e.Kind()]; f != nil {
		f(e)
	}
}
