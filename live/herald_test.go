package live

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// TestStatusBesideSteps: no step waits for a status that cannot be written yet. What
// changed is told once by an Event, and of what waits the last is written.
func TestStatusBesideSteps(t *testing.T) {
	turn, asked := make(chan struct{}), make(chan struct{}, 16)
	w := newWorld(t, 1, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			asked <- struct{}{}
			<-turn
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	c := w.controller(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.herald.run(ctx); close(done) }()
	until(t, "the herald runs", func() bool {
		c.herald.mu.Lock()
		defer c.herald.mu.Unlock()
		return c.herald.running
	})
	step(t, c)
	<-asked // it waits for its turn from now on
	for _, reason := range []string{"DisruptionBudget", "Nominated"} {
		c.DrainEnded(drain.Result{Node: "n000", Pool: "web", Outcome: drain.OutcomeHeld, Reason: reason, Message: "not now"})
		step(t, c)
		step(t, c)
	}
	close(turn)
	until(t, "the last is written", func() bool { return conditionReason(t, w, ConditionHeld) == "Nominated" })
	if n := len(asked); n != 1 {
		t.Errorf("%d statuses were written after the first, want only the last", n)
	}
	recorder, ok := w.parts.Events.(*events.FakeRecorder)
	if !ok {
		t.Fatalf("events go to %T", w.parts.Events)
	}
	held := 0
	for range len(recorder.Events) {
		if e := <-recorder.Events; e == "Warning DisruptionBudget Held: the drain of node n000 was held: not now" || e == "Warning Nominated Held: the drain of node n000 was held: not now" {
			held++
		} else {
			t.Log(e)
		}
	}
	if held != 2 {
		t.Errorf("%d Events tell what holds the pool, want one for each reason", held)
	}
	cancel()
	<-done
}

// TestStatusLost: a status that somebody else's change got in the way of is written
// anew by the next step, though nothing else is new.
func TestStatusLost(t *testing.T) {
	w := newWorld(t, 1, interceptor.Funcs{})
	c := w.controller(t)
	step(t, c)
	var stale v1alpha1.CapacityPool
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "web"}, &stale); err != nil {
		t.Fatal(err)
	}
	first, second := stale.DeepCopy(), stale.DeepCopy()
	first.Status.Nodes, second.Status.Nodes = 7, 8
	for _, x := range []*v1alpha1.CapacityPool{first, second} { // the second before the cache shows the first
		if err := c.herald.tell(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	var now v1alpha1.CapacityPool
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "web"}, &now); err != nil || now.Status.Nodes != 8 {
		t.Fatalf("%d nodes are told, %v; want 8", now.Status.Nodes, err)
	}
	now.Annotations = map[string]string{"of": "somebody else"}
	if err := w.client.Update(t.Context(), &now); err != nil {
		t.Fatal(err)
	}
	if err := c.herald.tell(t.Context(), stale.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "web"}, &now); err != nil || now.Status.Nodes != 8 || now.Annotations["of"] == "" {
		t.Fatalf("what somebody else wrote was overwritten: %+v, %v", now, err)
	}
	step(t, c) // long before figures are due
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "web"}, &now); err != nil || now.Status.Nodes != 1 {
		t.Errorf("after the next step %d nodes are told, %v; want 1", now.Status.Nodes, err)
	}
}

// TestBooksSideBySide: the books of pools do not wait for each other, and all wait for
// the head.
func TestBooksSideBySide(t *testing.T) {
	var head, books atomic.Int32
	both := make(chan struct{})
	w := newWorld(t, 0, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetLabels()[memoryLabel] == memoryHead {
				err := c.Create(ctx, o, opts...)
				head.Add(1)
				return err
			}
			if head.Load() == 0 {
				t.Error("a book is written before the head")
			}
			if books.Add(1) == 2 {
				close(both)
			}
			select {
			case <-both:
			case <-ctx.Done():
				t.Error("the second book waits for the first")
			}
			return c.Create(context.WithoutCancel(ctx), o, opts...)
		},
	})
	s := newStore(&w.cfg, &w.parts)
	m, _, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.book("api").Active, s.book("web").Active = true, true
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Save(ctx, &m); err != nil {
		t.Fatal(err)
	}
	again := newStore(&w.cfg, &w.parts)
	if _, _, err := again.Load(t.Context()); err != nil || !again.book("api").Active || !again.book("web").Active {
		t.Errorf("read back %+v, %v", again.books, err)
	}
}

// A slowWorld has to read the cluster before it may be observed.
type slowWorld struct {
	*world
	asked, there chan struct{}
}

func (w *slowWorld) Await(ctx context.Context) error {
	close(w.asked)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.there:
		return nil
	}
}

// TestAwaitCluster: the first step begins when the cluster has been read, and a process
// that is asked to end before ends.
func TestAwaitCluster(t *testing.T) {
	for _, read := range []bool{true, false} {
		w := newWorld(t, 1, interceptor.Funcs{})
		slow := &slowWorld{world: w, asked: make(chan struct{}), there: make(chan struct{})}
		w.parts.Observer = slow
		c, err := New(w.cfg, w.parts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Start(ctx) }()
		<-slow.asked
		if got := w.observed(); got != 0 {
			t.Fatal("the cluster is observed before it was read")
		}
		if read {
			close(slow.there)
			until(t, "it steps", func() bool { return w.observed() == 1 })
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := w.observed(); !read && got != 0 {
			t.Error("a process that is to end takes a step")
		}
	}
}

func (w *world) observed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}
