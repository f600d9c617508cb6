package live

import (
	"context"
	"slices"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// waits runs alarm.wait and gives what it returns.
func waits(t *testing.T, a *alarm, due time.Time) <-chan []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	got := make(chan []string, 1)
	go func() {
		reasons, err := a.wait(ctx, due, wakePlan)
		if err != nil {
			t.Error(err)
		}
		got <- reasons
	}()
	return got
}

// until polls for what another goroutine is about to do.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 6000 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it never came that %s", what)
}

// TestWakes shows when a step is due: when the plan says, ten seconds after the first
// of what can wait, at once for a notice, and once for all that came together.
func TestWakes(t *testing.T) {
	clock := clocktesting.NewFakeClock(t0)
	wakes := make(chan string, 16)
	a := &alarm{clock: clock, collect: 10 * time.Second, wakes: wakes}

	got := waits(t, a, t0.Add(10*time.Minute))
	until(t, "the timer runs", clock.HasWaiters)
	clock.Step(10 * time.Minute)
	if r := <-got; !slices.Equal(r, []string{"plan"}) {
		t.Errorf("at the time of the plan: %v", r)
	}

	got = waits(t, a, clock.Now().Add(10*time.Minute))
	until(t, "the timer runs", clock.HasWaiters)
	for _, r := range []string{"unschedulable", "refused", "refused"} {
		wakes <- r // when the last is taken, the first has set the timer
	}
	until(t, "all are heard", func() bool { return len(wakes) == 0 })
	clock.Step(9 * time.Second)
	select {
	case r := <-got:
		t.Fatalf("after nine seconds: %v", r)
	case <-time.After(50 * time.Millisecond):
	}
	wakes <- "unschedulable"
	wakes <- "unschedulable"
	until(t, "it is heard", func() bool { return len(wakes) == 0 })
	clock.Step(time.Second)
	if r := <-got; !slices.Equal(r, []string{"refused", "unschedulable"}) {
		t.Errorf("ten seconds after the first: %v", r)
	}

	got = waits(t, a, clock.Now().Add(10*time.Minute))
	wakes <- "unschedulable"
	wakes <- "notice"
	if r := <-got; !slices.Equal(r, []string{"notice", "unschedulable"}) {
		t.Errorf("at once: %v", r)
	}

	got = waits(t, a, clock.Now().Add(3*time.Second))
	until(t, "the timer runs", clock.HasWaiters)
	wakes <- "unschedulable"
	until(t, "it is heard", func() bool { return len(wakes) == 0 })
	clock.Step(3 * time.Second)
	if r := <-got; !slices.Equal(r, []string{"unschedulable"}) {
		t.Errorf("the plan is due before what is collected: %v", r)
	}
}
