package asg

import (
	"context"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kubefake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// onlyUndo permits only writes that remove a mark of Spotter.
func onlyUndo(ctx context.Context) error {
	cfg := permit.DefaultConfig()
	cfg.Mode = policy.ModeActive
	return permit.New(cfg, kubefake.NewClientBuilder().WithScheme(scheme).Build()).Check(ctx)
}

// What a swap and a steer left in a pool that is off, in shadow or deleted is taken back,
// and no instance is ended for that.
func TestCleanupInEveryMode(t *testing.T) {
	for name, change := range map[string]func(*fixture, *v1alpha1.CapacityPool) error{
		"off": func(w *fixture, p *v1alpha1.CapacityPool) error {
			p.Spec.Mode = v1alpha1.ModeOff
			return w.kube.Update(w.ctx(), p)
		},
		"shadow": func(w *fixture, p *v1alpha1.CapacityPool) error {
			p.Spec.Mode = v1alpha1.ModeShadow
			return w.kube.Update(w.ctx(), p)
		},
		"deleted": func(w *fixture, p *v1alpha1.CapacityPool) error { return w.kube.Delete(w.ctx(), p) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, spotGroup(3), fixedGroup(3))
			w.allow(AnnotationBounds + "=max")
			w.must(w.steer(0))
			w.must(w.launch("t1", policy.Spot))
			source := w.node(w.cloud.Group("web-od").Instances[0].ID)
			w.must(w.backend.Prepare(w.ctx(), source))
			w.awaitReady("web-spot", "t1")
			var pool v1alpha1.CapacityPool
			w.must(w.kube.Get(w.ctx(), client.ObjectKey{Name: "web"}, &pool))
			w.must(change(w, &pool))
			check := onlyUndo
			w.cfg.Fence = func(ctx context.Context) error { return check(ctx) }
			w.backend.groups.cloud.fence = w.cfg.Fence
			w.backend.kube.client = interceptor.NewClient(w.kube, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					if err := check(ctx); err != nil {
						return err
					}
					return c.Patch(ctx, o, p, opts...)
				},
			})
			for range 4 {
				w.pass(3 * time.Minute)
				w.must(w.backend.Cleanup(w.ctx(), nil, nil))
			}
			w.clean()
			g := w.cloud.Group("web-spot")
			if _, left := g.Tags[TagMax]; g.Max != 20 || left {
				t.Errorf("greatest size %d (tag %v), want the user's 20", g.Max, left)
			}
			if ended := w.cloud.Ended(); len(ended) > 0 || len(g.Instances) != 4 {
				t.Errorf("ended %v, and %d instances, want none and 4", ended, len(g.Instances))
			}
		})
	}
}

// A replacement that is neither wanted nor ready is terminated in a pool that may be changed. In
// any other pool it is left to the Cluster Autoscaler, without a mark of Spotter.
func TestAbandonedWhereThePoolIsOff(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	w.unready = true
	w.must(w.launch("t1", policy.Spot))
	for range 4 {
		w.pass(15 * time.Second)
		if got := w.replaced("t1"); got != backend.ReplacementWaiting {
			t.Fatalf("the replacement is %v", got)
		}
	}
	w.backend.groups.cloud.fence = onlyUndo
	w.must(w.backend.Undo(w.ctx(), nil, []string{"t1"}))
	w.pass(time.Minute)
	w.clean()
	if ended := w.cloud.Ended(); len(ended) > 0 || len(w.cloud.Group("web-spot").Instances) != 4 {
		t.Errorf("ended %v of a pool that is off", ended)
	}
}

// An endpoint of the caller's, as AWS_ENDPOINT_URL sets it, holds where the backend
// has none of its own.
func TestEndpointOfTheCaller(t *testing.T) {
	w := newFixture(t, spotGroup(1))
	for _, own := range []string{"", "http://own.test"} {
		w.cfg.Endpoint, w.base.BaseEndpoint = own, sdk.String("http://base.test")
		c := newCloud(&w.cfg, w.base)
		want := own
		if want == "" {
			want = "http://base.test"
		}
		for name, got := range map[string]*string{"autoscaling": c.scaling.Options().BaseEndpoint,
			"ec2": c.compute.Options().BaseEndpoint, "eks": c.managed.Options().BaseEndpoint} {
			if sdk.ToString(got) != want {
				t.Errorf("%s is asked at %q, want %q", name, sdk.ToString(got), want)
			}
		}
	}
}
