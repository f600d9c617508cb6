package live

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/policy"
)

// TestPhasesAddUp: every part of a step that can take long is a phase, so that the
// phases together are what it took.
func TestPhasesAddUp(t *testing.T) {
	w := newFixture(t, 3, interceptor.Funcs{})
	passes := func(d time.Duration) { w.clock.Step(d) }
	w.client = interceptor.NewClient(w.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == w.cfg.KillSwitch {
				passes(3 * time.Second) // four times, since nothing that was read is fresh here
			}
			return c.Get(ctx, key, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if o.GetLabels()[memoryLabel] == memoryHead {
				passes(8 * time.Second)
			}
			return c.Update(ctx, o, opts...)
		},
	})
	w.parts.Client, w.parts.Reader = w.client, w.client
	w.parts.Observer = observerFunc(func(ctx context.Context) (*policy.Snapshot, error) {
		passes(time.Second)
		return w.Observe(ctx)
	})
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		passes(2 * time.Second)
		s.Nodes[0].ReclaimAt = s.Now + 1 // else it is ordered during the step
		return drains(s, m)
	}
	var log bytes.Buffer
	w.parts.Log = slog.New(slog.NewJSONHandler(&log, nil))
	c := w.controller(t)
	c.parts.Drains = slowStart{w, func() { passes(16 * time.Second) }}
	decideOnly(t, c)
	var said struct {
		Msg    string
		Took   time.Duration
		Phases map[string]time.Duration
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &said); err != nil || said.Msg != "step" {
		t.Fatalf("%v: %s", err, log.String())
	}
	sum := time.Duration(0)
	for _, took := range said.Phases {
		sum += took
	}
	if sum != said.Took || said.Took != 42*time.Second {
		t.Errorf("a step of 42 s is said to have taken %v and its phases %v: %v", said.Took, sum, said.Phases)
	}
	for name, want := range map[string]time.Duration{"observe": 4, "decide": 2, "judge": 12, "save": 8, "publish": 16, "tell": 0} {
		if took, known := said.Phases[name]; !known || took != want*time.Second {
			t.Errorf("phase %s took %v (reported: %v), want %v", name, took, known, want*time.Second)
		}
	}
}

// A slowStart starts drains slowly.
type slowStart struct {
	*fixture
	passes func()
}

func (x slowStart) Start(ctx context.Context, s *policy.Snapshot, d *policy.Drain) error {
	x.passes()
	return x.fixture.Start(ctx, s, d)
}
