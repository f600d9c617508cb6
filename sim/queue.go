package sim

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
)

// An eventKind says what happens at an event. Events at one instant happen in
// the order of their kinds' ranks, then in the order in which they were added:
// first what the world does, then the scheduler and the provisioner, which work
// on all of it, and last the policy, which sees the result.
type eventKind uint8

const (
	evMeter       eventKind = iota // metering begins
	evFault                        // fault a begins or ends
	evReplicas                     // workload a reaches step b of its schedule
	evGrace                        // a growth of workload a begins to count
	evRetry                        // workload a tries again to make pods that a gate denied
	evRelease                      // job a releases instance b
	evJobDeadline                  // job instance a is due
	evRegistered                   // node a joins
	evInitialized                  // node a is ready for pods
	evNotice                       // node a is given notice, of being outbid if b
	evRecommend                    // node a gets a rebalance recommendation
	evReclaim                      // node a is taken
	evNodeGone                     // node a's object goes away
	evPodReady                     // pod a is ready
	evPodGone                      // pod a has terminated
	evPodFinished                  // pod a has done its work
	evGang                         // a timer of gang a, of kind b
	evDrain                        // drain a goes on
	evExpire                       // node a reaches the pool's expireAfter
	evFill                         // group a launches what it is missing
	evSchedule                     // the scheduler tries the pending pods
	evProvision                    // the provisioner's batch window closes
	evConsolidate                  // the provisioner looks for savings
	evScan                         // the Cluster Autoscaler looks at the cluster
	evStep                         // the policy decides
)

// An event is something that happens at one instant. It is a value: a queue of
// them allocates only to grow.
type event struct {
	at   policy.Time
	rank uint64 // kind, then order of adding
	a, b int32
	gen  int32 // of the slot a, so that an event of a past owner is told apart
}

func (e *event) kind() eventKind { return eventKind(e.rank >> 56) }

func (e *event) before(x *event) bool {
	if e.at != x.at {
		return e.at < x.at
	}
	return e.rank < x.rank
}

// A queue holds the events still to come, and is the clock of a run. It is a
// 4-ary heap: half as deep as a binary one, with children on one cache line.
type queue struct {
	now  policy.Time
	seq  uint64
	heap []event
}

// add plans an event. An instant in the past is a bug of the caller: it would
// make time run backwards.
func (q *queue) add(at policy.Time, kind eventKind, a, b, gen int32) {
	if at < q.now {
		panic(fmt.Sprintf("sim: event %d at %v is before now, %v", kind, at, q.now))
	}
	q.seq++
	q.heap = append(q.heap, event{at: at, rank: uint64(kind)<<56 | q.seq, a: a, b: b, gen: gen})
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

// next takes the earliest event up to and including end, and moves the clock
// to it. It reports false, with the clock at end, when there is none.
func (q *queue) next(end policy.Time) (event, bool) {
	if len(q.heap) == 0 || q.heap[0].at > end {
		q.now = end
		return event{}, false
	}
	h := q.heap
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	q.heap = h
	q.now = first.at
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
