package asg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// Regions works on the groups of several regions of one cluster. A pool may have groups in all of
// them. Each region is read by itself, so that a region that does not respond does not delay the
// others. But a launch waits for each region that it names, since it may already have been
// requested there.
type Regions struct {
	all []*Backend // ascending by region
}

var _ backend.Backend = (*Regions)(nil)

// NewRegions returns the backend of the groups in regions. Of cfg all but the region
// holds for each.
func NewRegions(cfg Config, regions []string, base sdk.Config, c client.Client, r client.Reader,
	sink backend.Sink) (*Regions, error) {
	names := slices.Sorted(slices.Values(regions))
	if len(names) == 0 {
		return nil, fmt.Errorf("asg: no region is set")
	}
	rs := &Regions{}
	for _, name := range slices.Compact(names) {
		cfg.Region = name
		b, err := New(cfg, base, c, r, sink)
		if err != nil {
			return nil, err
		}
		rs.all = append(rs.all, b)
	}
	return rs, nil
}

// SetupWithManager has a manager run the watching.
func (rs *Regions) SetupWithManager(m manager.Manager) error {
	var errs []error
	for _, b := range rs.all {
		errs = append(errs, b.SetupWithManager(m))
	}
	return errors.Join(errs...)
}

// names returns those of the regions.
func (rs *Regions) names() string {
	var names []string
	for _, b := range rs.all {
		names = append(names, b.cfg.Region)
	}
	return strings.Join(names, ", ")
}

// of returns the region of a node, and a Held if it is not in a managed region.
func (rs *Regions) of(node *corev1.Node) (*Backend, error) {
	for _, b := range rs.all {
		id, is := instanceID(node.Spec.ProviderID)
		if _, has := b.groups.find(func(g *group) bool { return is && g.has(id) }); has {
			return b, nil
		}
	}
	for _, b := range rs.all {
		if within(b.cfg.Region, node) {
			return b, nil
		}
	}
	return nil, backend.Hold(ReasonNoGroup, "node %s is in region %q, but groups are managed in %s", node.Name,
		node.Labels[corev1.LabelTopologyRegion], rs.names())
}

// within reports whether a node is in a region, where that is known: by its label, else by the zone
// in its provider ID, whose name starts with that of its region. A node without either may be in
// any region.
func within(region string, node *corev1.Node) bool {
	if label := node.Labels[corev1.LabelTopologyRegion]; label != "" {
		return label == region
	}
	parts := strings.Split(node.Spec.ProviderID, "/")
	zone := ""
	if len(parts) > 1 {
		zone = parts[len(parts)-2]
	}
	return zone == "" || strings.HasPrefix(zone, region)
}

// Steer writes to a pool's groups in each region what the pool should buy. If each region keeps the
// share, the pool does.
func (rs *Regions) Steer(ctx context.Context, s *policy.Snapshot, x *policy.Steer) error {
	var errs []error
	var none error
	for _, b := range rs.all {
		err := b.Steer(ctx, s, x)
		if isHeld(err, ReasonNoGroup) {
			none = err
			continue
		}
		errs = append(errs, inRegion(b, err))
	}
	if len(errs) == 0 {
		return none
	}
	return errors.Join(errs...)
}

// inRegion says in which region something went wrong.
func inRegion(b *Backend, err error) error {
	var h *backend.Held
	switch {
	case err == nil:
		return nil
	case errors.As(err, &h):
		return &backend.Held{Reason: h.Reason, Message: b.cfg.Region + ": " + h.Message, By: h.By}
	}
	return fmt.Errorf("%s: %w", b.cfg.Region, err)
}

// Launch makes a group larger in the first of the regions that the markets name where
// one may grow, once for each token. Two launches of one token are not to run at once.
func (rs *Regions) Launch(ctx context.Context, s *policy.Snapshot, l *policy.Launch) error {
	regions := rs.named(s, l)
	if len(regions) < 2 { // the first says what is wrong with a launch that names none
		return append(regions, rs.all[0])[0].Launch(ctx, s, l)
	}
	for _, b := range regions {
		asked, err := b.asked(ctx, l.Token)
		if asked || err != nil {
			return inRegion(b, b.groups.keepHeld(s.Pools[l.Pool].Name, err))
		}
	}
	var full, short, none error
	for _, b := range regions {
		err := b.Launch(ctx, s, l)
		switch {
		case errors.Is(err, driver.ErrNoCapacity):
			short = err
		case isHeld(err, passedOver...):
			full = inRegion(b, err)
		case isHeld(err, ReasonNoGroup):
			none = err
		default:
			return inRegion(b, err)
		}
	}
	for _, err := range []error{full, short} {
		if err != nil {
			return err
		}
	}
	return none
}

// named returns the regions of the markets of a launch, in the order in which they
// name them first.
func (rs *Regions) named(s *policy.Snapshot, l *policy.Launch) []*Backend {
	var regions []*Backend
	for _, id := range l.Markets {
		for _, b := range rs.all {
			if m := &s.Markets[id]; m.Provider == "aws" && m.Region == b.cfg.Region && !slices.Contains(regions, b) {
				regions = append(regions, b)
			}
		}
	}
	return regions
}

// asked reports whether a launch was requested in the region of b, as of a recent read.
func (b *Backend) asked(ctx context.Context, token string) (bool, error) {
	if err := b.groups.known(ctx); err != nil {
		return false, err
	}
	_, asked := b.groups.find(launched(token))
	return asked, nil
}

// find returns the region in which a launch was requested. It is nil if all regions were read again
// without finding the launch.
func (rs *Regions) find(ctx context.Context, token string) (*Backend, error) {
	for _, b := range rs.all {
		if _, has := b.groups.find(launched(token)); has {
			return b, nil
		}
	}
	var errs []error
	for _, b := range rs.all {
		if err := b.groups.poll(ctx); err != nil {
			errs = append(errs, inRegion(b, held(err, "looking for the launch %s", token)))
		} else if _, has := b.groups.find(launched(token)); has {
			return b, nil
		}
	}
	return nil, errors.Join(errs...)
}

// Prepare implements [backend.NodeReleaser].
func (rs *Regions) Prepare(ctx context.Context, node *corev1.Node) error {
	b, err := rs.of(node)
	if err != nil {
		return err
	}
	return b.Prepare(ctx, node)
}

// Release implements [backend.NodeReleaser].
func (rs *Regions) Release(ctx context.Context, node *corev1.Node) error {
	b, err := rs.of(node)
	if err != nil {
		return err
	}
	return b.Release(ctx, node)
}

// Replaced reports the progress of the launches of the tokens together, in whichever region each
// was requested.
func (rs *Regions) Replaced(ctx context.Context, tokens []string) (backend.Replacement, error) {
	return backend.Together(tokens, func(token string) (backend.Replacement, error) {
		b, err := rs.find(ctx, token)
		if err != nil || b == nil {
			return backend.ReplacementFailed, err
		}
		how, err := b.Replaced(ctx, []string{token})
		return how, inRegion(b, err)
	})
}

// Undo makes the node available to others again and gives up the launches of the tokens, in
// whichever region each was requested.
func (rs *Regions) Undo(ctx context.Context, node *corev1.Node, tokens []string) error {
	var errs []error
	if node != nil {
		b, err := rs.of(node)
		if err != nil {
			b = rs.all[0] // the marks are removed, wherever the node is
		}
		errs = append(errs, b.Undo(ctx, node, nil))
	}
	return errors.Join(append(errs, rs.each(ctx, tokens, func(b *Backend,
		token []string) error {
		return b.Undo(ctx, nil, token)
	}))...)
}

// Settle ends the protection of the replacements of the tokens.
func (rs *Regions) Settle(ctx context.Context, tokens []string) error {
	return rs.each(ctx, tokens, func(b *Backend, token []string) error { return b.Settle(ctx, token) })
}

// each calls f with each token in its region; one of which nothing is known needs
// nothing.
func (rs *Regions) each(ctx context.Context, tokens []string, f func(*Backend, []string) error) error {
	var errs []error
	for _, token := range tokens {
		b, err := rs.find(ctx, token)
		if err == nil && b != nil {
			err = inRegion(b, f(b, []string{token}))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Cleanup ends whatever a swap left behind, in each region.
func (rs *Regions) Cleanup(ctx context.Context, draining, tokens []string) error {
	var errs []error
	for _, b := range rs.all {
		errs = append(errs, inRegion(b, b.Cleanup(ctx, draining, tokens)))
	}
	return errors.Join(errs...)
}

// Notice takes a warning from the provider and returns who else drains the node
// because of it.
func (rs *Regions) Notice(n backend.Notice) policy.Actor {
	by := policy.ActorNone
	for _, b := range rs.all {
		by = max(by, b.Notice(n))
	}
	return by
}

// Conditions returns the conditions of a pool that concern its groups: the faults in any region,
// except those where it has no groups.
func (rs *Regions) Conditions(pool string) []metav1.Condition {
	said := map[string]metav1.Condition{}
	var none, good *metav1.Condition
	for _, b := range rs.all {
		for _, c := range b.Conditions(pool) {
			switch {
			case c.Status == metav1.ConditionTrue:
				good = &c
			case c.Reason == ReasonNoGroup:
				none = &c
			default:
				said[b.cfg.Region] = c
			}
		}
	}
	switch {
	case len(said) > 0:
		return []metav1.Condition{joined(said)}
	case good != nil:
		return []metav1.Condition{*good}
	case none != nil:
		return []metav1.Condition{*none}
	}
	return nil
}

// joined returns one condition for what is wrong by region, with the reason of the
// first.
func joined(said map[string]metav1.Condition) metav1.Condition {
	regions := slices.Sorted(maps.Keys(said))
	c := said[regions[0]]
	var messages []string
	for _, r := range regions {
		messages = append(messages, r+": "+said[r].Message)
	}
	c.Message = strings.Join(messages, "; ")
	return c
}
