package permit

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
)

// TestSwitchUnreadable: while the ConfigMap of the kill switch cannot be read, whatever the
// error, nothing is begun. What is ours can be taken back. Ten minutes of checks are made.
func TestSwitchUnreadable(t *testing.T) {
	for _, broken := range []error{
		apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "switch", errors.New("RBAC")),
		apierrors.NewInternalError(errors.New("etcd")), apierrors.NewUnauthorized("the token expired"), apierrors.NewTooManyRequests("slow down", 1),
		context.DeadlineExceeded, errors.New("connection refused"),
	} {
		b := newBench(t, policy.ModeActive, nil)
		b.wants(Act(t.Context(), "web"), t, Active)
		b.setSwitch(t, "true")
		b.get = func(context.Context) error { return broken }
		passed := 0
		for range 600 {
			b.clock.SetTime(b.clock.Now().Add(b.cfg.Fresh))
			for _, ctx := range []context.Context{Act(t.Context(), "web"), Enforce(t.Context())} {
				if b.Check(ctx) == nil {
					passed++
				}
			}
		}
		if passed > 0 {
			t.Errorf("%v: %d of 1200 checks let something be changed", broken, passed)
		}
		b.wants(Undo(t.Context()), t, Active)
	}
}

// TestCancelledCaller: a caller that gives up while the switch is read does not make the
// answer before count for another second, and does not fail the others that wait.
func TestCancelledCaller(t *testing.T) {
	b := newBench(t, policy.ModeActive, nil)
	b.wants(Act(t.Context(), "web"), t, Active)
	b.setSwitch(t, "true")
	ctx, cancel := context.WithCancel(Act(t.Context(), "web"))
	b.get = func(ctx context.Context) error {
		cancel()
		select { // as a client does whose caller is gone
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
			return nil
		}
	}
	b.clock.SetTime(b.clock.Now().Add(b.cfg.Fresh))
	if err := b.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has given up: %v", err)
	}
	denied := new(Denied)
	if err := b.Check(Act(t.Context(), "web")); !errors.As(err, &denied) || denied.Decision != Stopped {
		t.Errorf("the next caller: %v", err)
	}
}

// TestSlowPools: the reading of the pools may take all of its time, and the switch is read.
func TestSlowPools(t *testing.T) {
	b := newBench(t, policy.ModeActive, func(c *Config) { c.ReadMax = 100 * time.Millisecond })
	b.setSwitch(t, "true")
	b.list = func(context.Context) error { time.Sleep(150 * time.Millisecond); return nil }
	b.get = func(ctx context.Context) error { return ctx.Err() }
	b.wants(Act(t.Context(), "web"), t, Stopped)
}

// TestSlowReading: the age of what was read counts from before the reading.
func TestSlowReading(t *testing.T) {
	b := newBench(t, policy.ModeActive, nil)
	b.get = func(context.Context) error {
		b.clock.SetTime(b.clock.Now().Add(b.cfg.Fresh / 2)) // as a server that answers late
		return nil
	}
	act := Act(t.Context(), "web")
	if err := b.Check(act); err != nil {
		t.Fatal(err)
	}
	b.get = nil
	b.setSwitch(t, "true")
	b.clock.SetTime(b.clock.Now().Add(b.cfg.Fresh / 2))
	if err := b.Check(act); err == nil {
		t.Errorf("what was read %v ago is still believed", b.cfg.Fresh)
	}
}

// TestAnnotationRemoved: an annotation that is removed keeps the last value, on or off; any
// value that is neither true nor false stops.
func TestAnnotationRemoved(t *testing.T) {
	b := newBench(t, policy.ModeActive, nil)
	act := Act(t.Context(), "web")
	for _, x := range []struct {
		value string // empty removes the annotation
		want  Decision
	}{
		{"", Active}, {"true", Stopped}, {"", Stopped}, {"false", Active}, {"", Active}, {"stop", Stopped}, {"", Stopped},
		{"0", Active}, {" ", Stopped}, {"1", Stopped}, {"f", Active}, {"off", Stopped},
	} {
		var m corev1.ConfigMap
		if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "spotter", Name: "switch"}, &m); err != nil {
			t.Fatal(err)
		}
		m.Annotations = nil
		if x.value != "" {
			m.Annotations = map[string]string{KillSwitchAnnotation: x.value}
		}
		if err := b.client.Update(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
		b.wants(act, t, x.want)
		got, err := b.Switch(t.Context())
		if err != nil || got.Unreadable || x.value == "" && got.Problem == "" {
			t.Errorf("%q: %+v, %v", x.value, got, err)
		}
	}
}

// TestUndoNeedsLittle: what is ours can be taken back while neither the pools nor the
// switch can be read, but not without the lease.
func TestUndoNeedsLittle(t *testing.T) {
	var lost error
	b := newBench(t, policy.ModeActive, func(c *Config) { c.Fence = func(context.Context) (time.Time, error) { return time.Time{}, lost } })
	broken := errors.New("unreachable")
	b.list = func(context.Context) error { return broken }
	b.get = b.list
	b.wants(Undo(t.Context()), t, Active)
	b.clock.SetTime(b.clock.Now().Add(b.cfg.Fresh))
	if err := b.Check(Act(t.Context(), "web")); !errors.Is(err, broken) {
		t.Errorf("without pools: %v", err)
	}
	lost = errors.New("another leads")
	b.clock.SetTime(b.clock.Now().Add(b.cfg.Fresh))
	if err := b.Check(Undo(t.Context())); !errors.Is(err, lost) {
		t.Errorf("without the lease: %v", err)
	}
}

// TestLateJoiner: a caller that finds a reading under way that began too long before it
// waits for the next.
func TestLateJoiner(t *testing.T) {
	b := newBench(t, policy.ModeActive, nil)
	reading, answer := make(chan struct{}), make(chan struct{})
	b.get = func(context.Context) error {
		reading <- struct{}{}
		<-answer
		return nil
	}
	var again atomic.Bool
	b.list = func(context.Context) error {
		if again.Load() {
			return errors.New("read again")
		}
		return nil
	}
	act := Act(t.Context(), "web")
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- b.Check(act) }()
	<-reading
	b.clock.SetTime(b.clock.Now().Add(2 * b.cfg.Fresh))
	go func() { second <- b.Check(act) }()
	time.Sleep(10 * time.Millisecond) // until it waits
	again.Store(true)
	answer <- struct{}{}
	select {
	case <-reading:
		answer <- struct{}{}
	case <-time.After(5 * time.Second):
		t.Error("nothing is read again")
	}
	if err := <-first; err != nil {
		t.Errorf("the first caller: %v", err)
	}
	if err := <-second; err == nil {
		t.Error("the second caller takes what was read long before it asked")
	}
}
