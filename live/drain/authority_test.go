package drain

import (
	"cmp"
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A fakeAuthority says what the test says.
type fakeAuthority struct {
	mu       sync.Mutex
	decision permit.Decision // of every pool
	budget   *intstr.IntOrString
	freezes  []v1alpha1.Freeze
	paused   string // the annotation of the pool
	err      error
	asked    int
}

func (a *fakeAuthority) say(v permit.Decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decision = v
}

func (a *fakeAuthority) Pool(context.Context, string) (permit.Decision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.decision, a.err
}

func (a *fakeAuthority) Spec(context.Context, string) (*v1alpha1.CapacityPool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, many := &v1alpha1.CapacityPool{}, intstr.FromInt32(100)
	p.Spec.Disruption.Budget, p.Spec.Disruption.Freezes = cmp.Or(a.budget, &many), a.freezes
	p.Annotations = map[string]string{v1alpha1.AnnotationPause: a.paused}
	return p, a.err
}

func (a *fakeAuthority) Check(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	cfg := permit.DefaultConfig()
	cfg.Mode = policy.ModeActive
	noPools := permit.New(cfg, fake.NewClientBuilder().WithScheme(kinds()).Build())
	if a.err != nil || a.decision == permit.Active || noPools.Check(ctx) == nil { // it undoes
		return a.err
	}
	return &permit.Denied{Decision: a.decision}
}
