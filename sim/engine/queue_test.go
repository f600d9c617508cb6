package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestQueue holds that events come in the order of time, kind and adding.
func TestQueue(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var q Queue
	var want []Event
	for i := range 3000 {
		at, kind := policy.Time(rnd.IntN(300)), Kind(rnd.IntN(int(Step)+1))
		q.Add(at, kind, int32(i), 0, 0)
		want = append(want, Event{At: at, rank: uint64(kind)<<56 | uint64(i+1), A: int32(i)})
	}
	slices.SortFunc(want, func(x, y Event) int {
		return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Kind(), y.Kind()), cmp.Compare(x.A, y.A))
	})
	for i := range want {
		e, ok := q.Next(1000)
		if !ok || e != want[i] {
			t.Fatalf("event %d is %+v, want %+v", i, e, want[i])
		}
	}
	if _, ok := q.Next(1000); ok || q.Now != 1000 {
		t.Errorf("an empty queue gives an event, or leaves the clock at %v", q.Now)
	}
}

// TestQueueEnd holds that the last instant of a run belongs to it.
func TestQueueEnd(t *testing.T) {
	var q Queue
	q.Add(10, Step, 0, 0, 0)
	if e, ok := q.Next(9); ok || q.Now != 9 {
		t.Errorf("until 9 there is %+v, and the clock is at %v", e, q.Now)
	}
	if e, ok := q.Next(10); !ok || e.At != 10 {
		t.Errorf("until 10 there is %+v, %v", e, ok)
	}
}

func TestQueueRefusesThePast(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an event in the past is taken")
		}
	}()
	q := Queue{Now: 10}
	q.Add(9, Step, 0, 0, 0)
}

func BenchmarkQueue(b *testing.B) {
	var q Queue
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		q.Add(policy.Time(rnd.IntN(1_000_000)), Step, 0, 0, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		e, _ := q.Next(1 << 60)
		q.Add(e.At+policy.Time(rnd.IntN(1_000_000)), Step, 0, 0, 0)
	}
}
