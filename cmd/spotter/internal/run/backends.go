package run

import (
	"context"
	"fmt"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/live/asg"
	"github.com/spotter-dev/spotter/live/aws/wire"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/live/rackspace"
	"github.com/spotter-dev/spotter/policy"
)

// provision creates the backends.
func (w *wiring) provision(ctx context.Context) error {
	c, r := w.manager.GetClient(), w.manager.GetAPIReader()
	for _, name := range w.f.Backends {
		switch name {
		case "karpenter":
			cfg := karpenter.DefaultConfig()
			cfg.Ahead, cfg.Log, cfg.Provider, cfg.Clock = w.parts.Urgent, w.log, w.f.Provider, w.clock
			cfg.Since, cfg.Regions = policy.TimeOf(w.clock.Now().Add(-policy.NoticeLead(policy.AWS))), w.regions()
			b, err := karpenter.New(cfg, c, r, w.observer)
			if err != nil {
				return err
			}
			w.join(policy.ProvisionerKarpenter, b, b, b)
			if err := b.SetupWithManager(w.manager); err != nil {
				return err
			}
		case "asg":
			if err := w.provisionASG(ctx, c, r); err != nil {
				return err
			}
		case "rackspace":
			cfg := w.auction()
			cfg.Namespace, cfg.Fence, cfg.Log, cfg.Feed = w.f.Namespace, w.authority.Check, w.log, w.rackspace
			cfg.Located = func(cloudspace, region string) { w.book.Place(cloudspace, policy.Rackspace, region) }
			b, err := rackspace.New(cfg, c, r, w.observer)
			if err != nil {
				return err
			}
			w.join(policy.ProvisionerNone, b, b, tends(func(ctx context.Context,
				_ *policy.Snapshot) error {
				return b.Pass(ctx)
			}))
			if err := w.everywhere(b.Run); err != nil {
				return err
			}
		}
	}
	return nil
}

// provisionASG creates the backend for the Auto Scaling groups in all configured regions.
func (w *wiring) provisionASG(ctx context.Context, c client.Client, r client.Reader) error {
	cfg := asg.DefaultConfig()
	cfg.Fence, cfg.Log, cfg.Clock = w.authority.Check, w.log, w.clock
	base, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(w.f.Prices.Regions[0]), wire.Silent)
	if err != nil {
		return cli.Invalid(fmt.Errorf("AWS: %w", err), "give credentials as the AWS CLI takes them")
	}
	b, err := asg.NewRegions(cfg, w.f.Prices.Regions, base, c, r, w.observer)
	if err != nil {
		return cli.Invalid(err, fieldAdvice)
	}
	w.groups = b
	w.join(policy.ProvisionerClusterAutoscaler, b, b, tends(func(ctx context.Context, _ *policy.Snapshot) error {
		nodes, tokens := []string{}, []string{}
		for _, d := range w.drains.Status() {
			nodes, tokens = append(nodes, d.Node), append(tokens, d.After...)
		}
		return b.Cleanup(ctx, nodes, tokens)
	}))
	return b.SetupWithManager(w.manager)
}

// join adds a backend, its judge of pools and its periodic work.
func (w *wiring) join(of policy.Provisioner, b backend.Backend, judge live.Judge, tender live.Tender) {
	w.parts.Backends[of] = b
	w.parts.Judges = append(w.parts.Judges, judge)
	w.parts.Tenders = append(w.parts.Tenders, tender)
}

// A tends is a function that implements live.Tender.
type tends func(context.Context, *policy.Snapshot) error

func (f tends) Tend(ctx context.Context, s *policy.Snapshot) error { return f(ctx, s) }
