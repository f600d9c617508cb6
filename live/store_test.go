package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/packed"
	"github.com/spotter-dev/spotter/policy"
)

// TestRule14Memory loads what was saved, across a restart.
func TestRule14Memory(t *testing.T) {
	w := newFixture(t, 0, interceptor.Funcs{})
	ctx := context.Background()
	s := newStore(&w.cfg, &w.parts)
	if m, _, err := s.Load(ctx); err != nil || !reflect.DeepEqual(m, policy.Memory{}) {
		t.Fatalf("a new cluster remembers %+v, %v", m, err)
	}
	long := strings.Repeat("a-long-name-of-a-pool.", 11)
	m := policy.Memory{Decisions: 7, Pools: []policy.PoolMemory{
		{Name: long, Target: 0.5, HasTarget: true, Selected: []string{"x", "y"}},
		{Name: "web", Moved: 5, Backoff: []policy.Backoff{{Node: "n1", Until: 9, Tries: 2}}},
	}}
	s.book("web").Savings.Total.Paid = 42
	if err := s.Save(ctx, &m); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveExperience(ctx, []byte("met")); err != nil {
		t.Fatal(err)
	}
	again := newStore(&w.cfg, &w.parts)
	got, met, err := again.Load(ctx)
	if err != nil || !reflect.DeepEqual(got, m) || string(met) != "met" || again.book("web").Savings.Total.Paid != 42 {
		t.Errorf("remembered %+v, %q, %v; want %+v", got, met, err, m)
	}
}

// TestRule14OtherLeader saves nothing once another leader has written, does nothing
// of its plan and ends with the reason.
func TestRule14OtherLeader(t *testing.T) {
	w := newFixture(t, 3, interceptor.Funcs{})
	w.decide = drains
	old, next := w.controller(t), w.controller(t)
	w.take()
	next.cfg.Identity, next.store.head.Writer = "replica-b", "replica-b"
	step(t, next)
	if got := w.take(); count(got, "drain") != 1 {
		t.Fatalf("the new leader did %v", got)
	}
	w.clock.Step(time.Second)
	_, err := old.step(context.Background(), nil)
	if !errors.Is(err, ErrSuperseded) {
		t.Errorf("the old leader got %v", err)
	}
	if got := w.take(); len(got) != 0 {
		t.Errorf("the old leader did %v", got)
	}
	fresh := w.controller(t)
	step(t, next)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = fresh.loop(ctx)
	if !errors.Is(err, ErrSuperseded) {
		t.Errorf("the loop of a leader that is none ends with %v", err)
	}
}

// TestRule14FirstWrite takes one that was there before for another leader's too.
func TestRule14FirstWrite(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	a, b := w.controller(t), w.controller(t)
	b.store.head.Writer = "replica-b"
	step(t, a)
	w.clock.Step(time.Second)
	if _, err := b.step(context.Background(), nil); !errors.Is(err, ErrSuperseded) {
		t.Errorf("two replicas made the memory of one cluster: %v", err)
	}
}

// TestMemoryGoesFirst writes the memory by the client whose writes go first: nothing is
// done before it is saved.
func TestMemoryGoesFirst(t *testing.T) {
	refuse := func(o client.Object) error {
		if _, memory := o.(*corev1.ConfigMap); memory {
			return errors.New("it waits its turn")
		}
		return nil
	}
	w := newFixture(t, 1, interceptor.Funcs{})
	w.parts.Urgent = w.client
	w.parts.Client = interceptor.NewClient(w.client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return cmp.Or(refuse(o), c.Create(ctx, o, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return cmp.Or(refuse(o), c.Update(ctx, o, opts...))
		},
	})
	c := w.controller(t)
	for range 2 {
		step(t, c)
		w.clock.Step(time.Minute)
	}
}

// TestRule14LostAnswer does not take its own write, the answer to which was lost, for
// another leader's.
func TestRule14LostAnswer(t *testing.T) {
	lose := 0
	lost := errors.New("timeout: the answer was lost")
	w := newFixture(t, 1, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := c.Create(ctx, o, opts...); err != nil || lose == 0 {
				return err
			}
			lose--
			return lost
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := c.Update(ctx, o, opts...); err != nil || lose == 0 {
				return err
			}
			lose--
			return lost
		},
	})
	c := w.controller(t)
	for i := range 3 {
		lose = 1
		if _, err := c.step(context.Background(), nil); !errors.Is(err, lost) {
			t.Fatalf("step %d: %v", i, err)
		}
		w.clock.Step(time.Minute)
		step(t, c)
		w.clock.Step(time.Minute)
	}
}

// TestRule14APIErrors survives every answer of the API server: the step fails, nothing
// is done, and a later one goes through.
func TestRule14APIErrors(t *testing.T) {
	var answer error
	w := newFixture(t, 2, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if answer != nil {
				return answer
			}
			return c.Update(ctx, o, opts...)
		},
	})
	w.decide = drains
	c := w.controller(t)
	step(t, c)
	for _, code := range apiErrors() {
		w.clock.Step(time.Minute)
		w.take()
		answer = code
		if _, err := c.step(context.Background(), nil); !errors.Is(err, code) || errors.Is(err, ErrSuperseded) {
			t.Errorf("%v: the step says %v", code, err)
		}
		if got := w.take(); len(got) != 0 {
			t.Errorf("%v: without a memory it did %v", code, got)
		}
		answer = nil
		step(t, c)
		if got := w.take(); count(got, "drain") == 0 {
			t.Errorf("%v: nothing is done afterwards", code)
		}
	}
}

// TestMemoryIsBounded drops what can be done without before an object grows above its
// bound.
func TestMemoryIsBounded(t *testing.T) {
	b := &poolBook{Format: memoryFormat, Memory: policy.PoolMemory{Name: "web"}}
	for i := range 200_000 {
		name := fmt.Sprintf("ip-10-%d-%d-%d.ec2.internal", i*7919%251, i*104729%241, i*1299709%239)
		b.Memory.Idle = append(b.Memory.Idle, policy.Idle{Node: name, Since: policy.Time(i * i)})
	}
	data, err := packBook(b)
	if err != nil || len(data) > packed.Max {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	for i := range 100_000 {
		b.Memory.Selected = append(b.Memory.Selected, fmt.Sprintf("%x", i*i*2654435761))
	}
	if _, err := packBook(b); err == nil || !strings.Contains(err.Error(), "pool web") {
		t.Errorf("what fits nowhere is saved: %v", err)
	}
}

// TestMemoryOfLaterVersion refuses what it does not know.
func TestMemoryOfLaterVersion(t *testing.T) {
	w := newFixture(t, 0, interceptor.Funcs{})
	ctx := context.Background()
	s := newStore(&w.cfg, &w.parts)
	if _, _, err := s.Load(ctx); err != nil {
		t.Fatal(err)
	}
	s.head.Format = memoryFormat + 1
	if err := s.Save(ctx, &policy.Memory{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := newStore(&w.cfg, &w.parts).Load(ctx); err == nil || !strings.Contains(err.Error(), "later version") {
		t.Errorf("it read it: %v", err)
	}
	var x corev1.ConfigMap
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.cfg.Namespace, Name: "spotter-memory-head"}, &x); err != nil {
		t.Fatal(err)
	}
	x.BinaryData[memoryKey] = []byte("torn")
	if err := w.client.Update(ctx, &x); err != nil {
		t.Fatal(err)
	}
	if _, _, err := newStore(&w.cfg, &w.parts).Load(ctx); err == nil || !strings.Contains(err.Error(), "spotter-memory-head") {
		t.Errorf("what is torn is read, or not named: %v", err)
	}
}

// TestFiguresAreSavedNowAndThen writes the object of a pool when what must be known
// changes, and else every few minutes.
func TestFiguresAreSavedNowAndThen(t *testing.T) {
	writes := map[string]int{}
	w := newFixture(t, 2, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			writes[o.GetName()]++
			return c.Update(ctx, o, opts...)
		},
	})
	c := w.controller(t)
	for range 20 { // five minutes
		step(t, c)
		w.clock.Step(15 * time.Second)
	}
	step(t, c)
	if head, pool := writes["spotter-memory-head"], writes[memoryName(memoryBook, "web")]; head != 21 || pool != 1 {
		t.Errorf("in five minutes of 21 steps the head was written %d times anew and the pool %d times", head, pool)
	}
}

// TestShadowWritesLittle: what a policy remembers is saved at every step in which it
// changes where something may be done, and with the figures where nothing is.
func TestShadowWritesLittle(t *testing.T) {
	for mode, want := range map[policy.Mode]int{policy.ModeShadow: 1, policy.ModeActive: 20} {
		writes := 0
		w := newFixture(t, 2, interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				if o.GetName() == memoryName(memoryBook, "web") {
					writes++
				}
				return c.Update(ctx, o, opts...)
			},
		})
		w.cfg.Mode = mode
		w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
			m.Decisions++
			m = m.With(policy.PoolMemory{Name: "web", Steered: s.Now})
			return policy.Plan{Wake: policy.NextStep(s.Now, policy.DefaultStep)}, m
		}
		c := w.controller(t)
		for range 21 { // five minutes
			step(t, c)
			w.clock.Step(15 * time.Second)
		}
		if writes != want {
			t.Errorf("%v: in five minutes of 21 steps the memory of the pool was written %d times anew, want %d", mode, writes, want)
		}
		if _, _, err := c.store.Load(context.Background()); err != nil || c.store.book("web").Memory.Steered == 0 {
			t.Errorf("%v: what was saved is %+v, %v", mode, c.store.book("web").Memory, err)
		}
	}
}

// TestBooksSideBySide: the books of pools do not wait for each other, and all wait for
// the head.
func TestBooksSideBySide(t *testing.T) {
	var head, books atomic.Int32
	both := make(chan struct{})
	w := newFixture(t, 0, interceptor.Funcs{
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

// TestRule14Key: the key that marks of drains are sealed with is saved before anything can be
// marked, and is that of the next leader as well.
func TestRule14Key(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	w.controller(t)
	first := w.key
	s := newStore(&w.cfg, &w.parts)
	if _, _, err := s.Load(t.Context()); err != nil || len(first) < 32 || !bytes.Equal(s.head.Key, first) {
		t.Errorf("before the first step the memory has the key %x, marks are sealed with %x: %v", s.head.Key, first, err)
	}
	step(t, w.controller(t))
	w.key = nil
	w.controller(t)
	if !bytes.Equal(w.key, first) {
		t.Errorf("the next leader has the key %x, want %x", w.key, first)
	}
}

// TestBooksOfDeletedPools: what is remembered of a pool that is deleted is kept for a season, dropped then, and not
// written again by a process that remembers it.
func TestBooksOfDeletedPools(t *testing.T) {
	w := newFixture(t, 0, interceptor.Funcs{})
	ctx := context.Background()
	s := newStore(&w.cfg, &w.parts)
	if _, _, err := s.Load(ctx); err != nil {
		t.Fatal(err)
	}
	now := policy.TimeOf(t0)
	memory := &policy.Memory{Pools: []policy.PoolMemory{{Name: "shop", Target: 0.5}, {Name: "web", Target: 0.5}}}
	both, one := []policy.Pool{{Name: "shop"}, {Name: "web"}}, []policy.Pool{{Name: "shop"}}
	save := func(pools []policy.Pool, after time.Duration) (names []string) {
		t.Helper()
		now = now.Add(after)
		s.head.Metered = now
		if err := errors.Join(s.forget(ctx, pools, now), s.Save(ctx, memory)); err != nil {
			t.Fatal(err)
		}
		again := newStore(&w.cfg, &w.parts)
		if _, _, err := again.Load(ctx); err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Keys(again.books))
	}
	for i, x := range []struct {
		pools []policy.Pool
		after time.Duration
		want  string
	}{
		{both, 0, "shop web"}, {one, time.Hour, "shop web"}, {one, goneMax, "shop web"}, {both, time.Hour, "shop web"},
		{one, time.Hour, "shop web"}, {one, goneMax, "shop web"}, {one, time.Hour, "shop"}, {one, time.Hour, "shop"}, {both,
			time.Hour, "shop web"},
	} {
		if got := strings.Join(save(x.pools, x.after), " "); got != x.want {
			t.Errorf("step %d: %s are remembered, want %s", i, got, x.want)
		}
	}
}
