package asg

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/permit"
)

// A Restored describes what was restored in a group.
type Restored struct {
	Region, Group string
	What          []string
}

// Restore restores groups to their state before a controller that no longer exists: their settings,
// the protection of their instances, and their tags. It covers the groups of all CapacityPools and
// all groups that have nodes of the cluster. A dry run changes nothing. If Restore returns an
// error, it also returns what was restored.
func Restore(ctx context.Context, cfg Config, regions []string, base sdk.Config, c client.Client,
	dryRun bool) ([]Restored, error) {
	rs, err := NewRegions(cfg, regions, base, c, c, nil)
	if err != nil {
		return nil, err
	}
	pools, err := rs.all[0].kube.readPools(ctx)
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) { // the CRD may be gone already
		return nil, err
	}
	var all []Restored
	var errs []error
	for _, b := range rs.all {
		done, err := b.restore(ctx, pools, dryRun)
		all, errs = append(all, done...), append(errs, inRegion(b, err))
	}
	return all, errors.Join(errs...)
}

// restore restores the groups of one region.
func (b *Backend) restore(ctx context.Context, pools []poolOf, dryRun bool) ([]Restored, error) {
	list, err := b.groups.cloud.groups(ctx, nil)
	if err = b.groups.cloud.blame(ctx, err); err != nil {
		return nil, held(err, "reading the Auto Scaling groups")
	}
	nodes, err := b.kube.nodesByInstance(ctx)
	if err != nil {
		return nil, err
	}
	var all []Restored
	var errs []error
	for i := range list {
		g := groupOf(&list[i])
		if !belongs(g, pools, nodes) {
			continue
		}
		g, err := b.groups.fresh(ctx, g.name)
		if isHeld(err, ReasonGone) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		what, err := b.giveBack(permit.Undo(ctx), g, dryRun)
		if errs = append(errs, err); len(what) > 0 {
			all = append(all, Restored{b.cfg.Region, g.name, what})
		}
	}
	return all, errors.Join(errs...)
}

// belongs reports whether a group belongs to one of the pools or has one of the nodes.
func belongs(g *group, pools []poolOf, nodes map[string]*corev1.Node) bool {
	for _, p := range pools {
		if claims(p, g) {
			return true
		}
	}
	for i := range g.instances {
		if nodes[g.instances[i].id] != nil {
			return true
		}
	}
	return false
}

// giveBack restores what Spotter changed in a group, and returns a description of it.
func (b *Backend) giveBack(ctx context.Context, g *group, dryRun bool) (what []string, err error) {
	var errs []error
	do := func(f func() error, format string, args ...any) {
		if !dryRun {
			if err := f(); err != nil {
				errs = append(errs, err)
				return
			}
		}
		what = append(what, fmt.Sprintf(format, args...))
	}
	for _, x := range []*setting{&maxSize, &onDemandPart} {
		if m, ours := x.read(g); ours {
			do(func() error { return b.steering.giveBack(ctx, g, x) }, "%s %d instead of %d", x.name, x.of(g), m.user)
		}
	}
	for _, l := range g.launches {
		protected := ""
		if l.protected {
			protected = ", with the scale-in protection of instance " + l.instance
		}
		do(func() error { return b.launches.settle(ctx, g, l) }, "the tag %s%s", TagLaunch+l.token, protected)
	}
	if g.tags[TagSteer] != "" {
		do(func() error {
			return heldOr(b.groups.cloud.untag(ctx, g, TagSteer), "removing the tag %s of the group %s", TagSteer, g.name)
		}, "the tag %s", TagSteer)
	}
	return what, errors.Join(errs...)
}
