package cluster_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
	"github.com/spotter-dev/spotter/test/nightly"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A follower is the recorder of a simulated run that shows every step to one
// observer, as the objects that have changed, in random order.
type follower struct {
	t      *testing.T
	mirror *mirror
	seed   uint64
	steps  int
	most   int
	before map[string]bool // the pods that the observer saw last
	ended  int
	held   []heldSnapshot // the last few that the observer returned
}

func (f *follower) Record(_ context.Context, s *policy.Snapshot, _ *policy.Memory, _ *policy.Plan) error {
	f.steps++
	seen := f.mirror.show(s)
	if d := differences(canon(s), canon(seen)); d != nil {
		f.t.Fatalf("step %d at %v, seed %d: what was updated is not what is (- is, + seen):\n%s", f.steps, s.Now, f.seed,
			strings.Join(d[:min(12, len(d))], "\n"))
	}
	f.checkEnded(s, seen)
	for _, h := range f.held {
		h.check(f.t)
	}
	f.held = append(f.held[max(0, len(f.held)-2):], hold(f.t, seen))
	if f.steps >= f.most {
		return errEnough
	}
	return nil
}

// checkEnded holds that every pod that was seen and is gone is reported once.
func (f *follower) checkEnded(s, seen *policy.Snapshot) {
	now := map[string]bool{}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Phase != policy.PodGone {
			now[p.Name+p.Created.String()] = true
		}
	}
	gone := 0
	for p := range f.before {
		if !now[p] {
			gone++
		}
	}
	if len(seen.Ended) != gone {
		f.t.Fatalf("step %d, seed %d: %d pods ended and %d are reported", f.steps, f.seed, gone, len(seen.Ended))
	}
	for _, e := range seen.Ended {
		name := seen.Templates[e.Template].Name
		if !strings.HasPrefix(e.Name, name+"-") || e.End != s.Now {
			f.t.Fatalf("step %d, seed %d: %+v of template %s", f.steps, f.seed, e, name)
		}
		if i := slices.IndexFunc(s.Ended, func(x policy.EndedPod) bool { return x.Name == e.Name && x.Start == e.Start }); i < 0 {
			f.t.Fatalf("step %d, seed %d: %+v did not end in the simulator", f.steps, f.seed, e)
		}
	}
	f.ended += gone
	f.before = now
}

// TestUpdatedIsRebuilt runs scenarios and sends each change of them in random order: after every
// step the updated tables show what the simulator shows, as rebuilt tables do
// ([TestSimulatorAndLiveAgree]).
func TestUpdatedIsRebuilt(t *testing.T) {
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	seed := testenv.Seed(t)
	for _, c := range []struct{ scenario, policy string }{{"tiny", "static"}, {"stateful-zonal", "spot"},
		{"squeeze", "spotvortex"}, {"asg-web", "spot"}} {
		t.Run(c.scenario, func(t *testing.T) {
			sc, err := scenarios.Load(c.scenario)
			if err != nil {
				t.Fatal(err)
			}
			w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w.WarmUp, w.Intensity, w.StartCluster = min(w.WarmUp, time.Hour), 5, scenarios.StartOnDemand
			stage, err := sim.Prepare(w)
			if err != nil {
				t.Fatal(err)
			}
			forecaster, err := models.NewClosedForm(models.DefaultConfig())
			if err != nil {
				t.Fatal(err)
			}
			p, err := registry.New(c.policy, registry.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f := &follower{t: t, mirror: newMirror(t, manifestsOf(t, c.scenario)), seed: seed, most: nightly.Count(100, 150)}
			f.mirror.shuffle = rand.New(rand.NewPCG(seed, 1))
			_, err = sim.Run(context.Background(), sim.Config{Prepared: stage, Policy: p, Forecaster: forecaster, Seed: 1, Recorder: f})
			if err != nil && !errors.Is(err, errEnough) {
				t.Fatal(err)
			}
			if f.ended == 0 {
				t.Error("no pod ended")
			}
			f.experience()
			t.Logf("%d steps, %d pods ended, %d events", f.steps, f.ended, len(f.mirror.book.met))
		})
	}
}

// experience holds that every node that was launched after the start counts once as a launch, and
// at most once as a reclaim.
func (f *follower) experience() {
	launches, reclaims := 0, 0
	for _, e := range f.mirror.book.met {
		switch e.Kind {
		case 0:
			launches++
		case 2:
			reclaims++
		}
	}
	if launches == 0 || reclaims > launches+f.mirror.initial {
		f.t.Errorf("seed %d: %d launches, %d reclaims, %d nodes at the begin", f.seed, launches, reclaims, f.mirror.initial)
	}
	if launches != len(f.mirror.seen)-f.mirror.initial {
		f.t.Errorf("seed %d: %d launches of %d nodes, %d of them there at the begin", f.seed, launches, len(f.mirror.seen), f.mirror.initial)
	}
}
