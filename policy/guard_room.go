package policy

import (
	"cmp"
	"slices"
)

// A vacancy is the room of a node that stays, as far as requests tell. What else
// the scheduler asks is for the policy to look after: this is to notice where
// pods are sent away although nothing could take them.
type vacancy struct {
	pool PoolID
	free Resources
}

// surveyRoom finds the room of the nodes that stay. One that the plan drains
// gives none, whether its drain is let through or held.
func (r *review) surveyRoom() {
	at := make([]int32, len(r.s.Nodes)) // 1 + the index in vacancies
	for i := range r.s.Nodes {
		n := &r.s.Nodes[i]
		if n.Pool != None && n.Usable() && n.ActedBy == ActorNone && r.slot[i] == 0 {
			r.vacancies = append(r.vacancies, vacancy{n.Pool, n.Allocatable})
			at[i] = int32(len(r.vacancies))
		}
	}
	for i := range r.s.Pods {
		p := &r.s.Pods[i]
		on := p.Node
		if p.Phase == PodPending {
			on = p.Nominated
		}
		if p.Phase == PodGone || on == None || at[on] == 0 {
			continue
		}
		v := &r.vacancies[at[on]-1]
		v.free = v.free.Minus(r.asked(PodID(i)))
	}
}

func (r *review) asked(p PodID) Resources { return r.s.Templates[r.s.Pods[p].Template].Requests }

// settle finds room for the pods of l on other nodes of its pool, the largest
// first, each where the least CPU is left, and takes it if there is enough for
// all of them. It reports whether there is.
func (r *review) settle(l *leavingNode) bool {
	slices.SortFunc(l.movers, func(a, b PodID) int {
		x, y := r.asked(a), r.asked(b)
		return cmp.Or(cmp.Compare(y.CPU, x.CPU), cmp.Compare(y.Memory, x.Memory), cmp.Compare(a, b))
	})
	pool := r.s.Nodes[l.node].Pool
	at := make([]int, 0, len(l.movers)) // the vacancy of each so far
	for _, p := range l.movers {
		asked, best := r.asked(p), -1
		for i := range r.vacancies {
			v := &r.vacancies[i]
			if v.pool == pool && asked.Within(v.free) && (best < 0 || v.free.CPU < r.vacancies[best].free.CPU) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		r.vacancies[best].free = r.vacancies[best].free.Minus(asked)
		at = append(at, best)
	}
	if len(at) == len(l.movers) {
		return true
	}
	for i, best := range at {
		r.vacancies[best].free = r.vacancies[best].free.Plus(r.asked(l.movers[i]))
	}
	return false
}
