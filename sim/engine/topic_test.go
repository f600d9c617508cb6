package engine

import (
	"slices"
	"testing"
)

// Those who subscribed are called with each thing that is published, in the order in which they did.
func TestTopic(t *testing.T) {
	var topic Topic[int]
	var heard []int
	topic.Publish(1) // no subscriber yet
	topic.Subscribe(func(x int) { heard = append(heard, x) })
	topic.Publish(2)
	topic.Subscribe(func(x int) { heard = append(heard, 10*x) })
	topic.Publish(3)
	if want := []int{2, 3, 30}; !slices.Equal(heard, want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
}

// An event calls what was set for its kind; one that only marks an instant calls nothing.
func TestQueueCarriesOut(t *testing.T) {
	var q Queue
	var done []int32
	q.On(Step, func(e *Event) { done = append(done, e.A) })
	q.Add(1, Step, 7, 0, 0)
	q.Add(1, MeteringBegins, 8, 0, 0)
	for e, ok := q.Next(1); ok; e, ok = q.Next(1) {
		q.CarryOut(&e)
	}
	if !slices.Equal(done, []int32{7}) {
		t.Errorf("carried out %v, want the step", done)
	}
}
