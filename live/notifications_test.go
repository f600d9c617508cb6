package live

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/notify"
	"github.com/spotter-dev/spotter/policy"
)

// A received is an event as a webhook gets it.
type received struct {
	Type, Subject string
	Data          map[string]any
}

// notified has a fixture send its notifications to a webhook, and returns what that has got
// once all are sent.
func notified(t *testing.T, w *fixture) func() []received {
	t.Helper()
	var mu sync.Mutex
	var got []received
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var x received
		if err := json.Unmarshal(body, &x); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, x)
	}))
	t.Cleanup(server.Close)
	cfg := notify.DefaultConfig()
	cfg.URL, cfg.Source = server.URL, "/test"
	w.parts.Notifier = notify.New(cfg)
	return func() []received {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = w.parts.Notifier.Run(ctx) // sends what waits
		mu.Lock()
		defer mu.Unlock()
		all := got
		got = nil
		return all
	}
}

func typesOf(all []received) string {
	var names []string
	for _, x := range all {
		names = append(names, strings.TrimPrefix(x.Type, "dev.spotter.")+" "+x.Subject)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// TestNotifications: the switch, drains that were undone, gates and ramps are each notified
// once, and what stays as it is is not.
func TestNotifications(t *testing.T) {
	w := newFixture(t, 30, interceptor.Funcs{})
	take := notified(t, w)
	kill := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.cfg.Namespace, Name: w.cfg.KillSwitch,
		Annotations: map[string]string{KillSwitchAnnotation: "false"}}}
	if err := w.client.Create(t.Context(), kill); err != nil {
		t.Fatal(err)
	}
	c := w.controller(t)
	step(t, c)
	step(t, c)
	if got := typesOf(take()); got != "ramp.changed web" {
		t.Fatalf("a pool that becomes active: %s", got)
	}
	turn := func(value string) {
		t.Helper()
		kill.Annotations[KillSwitchAnnotation] = value
		if err := w.client.Update(t.Context(), kill); err != nil {
			t.Fatal(err)
		}
		step(t, c)
		step(t, c)
	}
	turn("true")
	if got := take(); typesOf(got) != "killswitch.changed spotter-kill-switch" || got[0].Data["on"] != true {
		t.Errorf("the switch is turned on: %+v", got)
	}

	// A leader that takes over while the switch is on has nothing new to tell.
	c = w.controller(t)
	step(t, c)
	if got := take(); len(got) != 0 {
		t.Errorf("the next leader: %+v", got)
	}
	turn("false")
	if got := take(); typesOf(got) != "killswitch.changed spotter-kill-switch, ramp.changed web" {
		t.Errorf("the switch is turned off: %+v", got)
	}

	c.DrainEnded(drain.Result{Node: "n001", Pool: "web", Outcome: drain.OutcomeHeld, Reason: "Later"})
	c.DrainEnded(drain.Result{Node: "n002", Pool: "web", Outcome: drain.OutcomeDone})
	c.DrainEnded(drain.Result{Node: "n003", Pool: "web", Outcome: drain.OutcomeUndone, Reason: "Deadline", Message: "too late"})
	if got := take(); typesOf(got) != "drain.undone n003" || got[0].Data["reason"] != "Deadline" || got[0].Data["pool"] != "web" {
		t.Errorf("drains: %+v", got)
	}

	for _, closed := range []bool{true, true, false, false} {
		c.notifyGate(&policy.Gate{Budget: "ml/night", Closed: closed})
	}
	if got := take(); typesOf(got) != "gate.changed ml/night, gate.changed ml/night" || got[0].Data["closed"] != true ||
		got[1].Data["closed"] != false {
		t.Errorf("gates: %+v", got)
	}
}

// TestWeeklySavings: with the first step of a week what was saved in the week before is
// notified once, also by another leader.
func TestWeeklySavings(t *testing.T) {
	w := newFixture(t, 2, interceptor.Funcs{})
	take := notified(t, w)
	w.snapshot.Nodes[0].Market = 1 // on Spot: $0.04 in place of $0.10
	c := w.controller(t)
	steps := func(d time.Duration) {
		for end := w.clock.Now().Add(d); w.clock.Now().Before(end); w.clock.Step(30 * time.Minute) {
			step(t, c)
		}
	}
	steps(24 * time.Hour) // from Monday, 2 March
	c = w.controller(t)
	steps(6*24*time.Hour - 8*time.Hour)
	var weekly []received
	for _, x := range take() {
		if x.Type == notify.WeeklySavings {
			weekly = append(weekly, x)
		}
	}
	if len(weekly) != 0 {
		t.Fatalf("before the week is over: %+v", weekly)
	}
	steps(time.Hour)
	c = w.controller(t)
	steps(time.Hour)
	for _, x := range take() {
		if x.Type == notify.WeeklySavings {
			weekly = append(weekly, x)
		}
	}
	if len(weekly) != 1 || weekly[0].Subject != "2026-W10" {
		t.Fatalf("in the next week: %+v", weekly)
	}
	hours := 6*24.0 + 16 // of $0.06, and as many on demand that save nothing
	if got := weekly[0].Data["savedDollars"].(float64); got < 0.06*hours-0.07 || got > 0.06*hours+0.07 {
		t.Errorf("saved $%.3f in %.0f h, want $%.3f", got, hours, 0.06*hours)
	}
	if pools := weekly[0].Data["pools"].([]any); len(pools) != 1 || pools[0].(map[string]any)["pool"] != "web" {
		t.Errorf("pools %v", pools)
	}
}
