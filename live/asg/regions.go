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

// Regions works on the groups of one cluster in several regions. A pool may have groups in all of
// them. Each region is read separately, so that a region that does not respond does not delay the
// others. A launch, however, waits for each region that it names, since it may already have been
// requested there.
type Regions struct {
	all []*Backend // ascending by region
}

var _ backend.Backend = (*Regions)(nil)

// NewRegions returns the backend of the groups in regions. All fields of cfg except Region apply to
// each of them.
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

// SetupWithManager adds the backends of all regions to a manager, which then runs them.
func (rs *Regions) SetupWithManager(m manager.Manager) error {
	var errs []error
	for _, b := range rs.all {
		errs = append(errs, b.SetupWithManager(m))
	}
	return errors.Join(errs...)
}

// names returns the names of the regions, separated by commas.
func (rs *Regions) names() string {
	var names []string
	for _, b := range rs.all {
		names = append(names, b.cfg.Region)
	}
	return strings.Join(names, ", ")
}

// of returns the backend of the region of a node. It returns a [backend.Held] if the node is not in
// a managed region.
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

// within reports whether a node is in a region, according to its region label or else the zone in
// its provider ID, which starts with the name of its region. A node without either may be in any
// region.
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

// Steer writes the steer of a pool to its groups in each region. If each region keeps the share, so
// does the pool.
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

// inRegion adds the name of the region to an error; nil stays nil.
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

// Launch increases the size of a group in the first region, in the order of the markets, in which a
// group may grow, once for each token. Two launches with the same token must not run at the same
// time.
func (rs *Regions) Launch(ctx context.Context, s *policy.Snapshot, l *policy.Launch) error {
	regions := rs.named(s, l)
	if len(regions) < 2 { // the first region returns the error of a launch that names no region
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

// named returns the regions of the markets of a launch, in the order in which the markets first
// name them.
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

// asked reports whether a launch was requested in the region of b, according to a recent read.
func (b *Backend) asked(ctx context.Context, token string) (bool, error) {
	if err := b.groups.known(ctx); err != nil {
		return false, err
	}
	_, asked := b.groups.find(launched(token))
	return asked, nil
}

// find returns the region in which a launch was requested; nil if all regions were read again
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

// Replaced returns the combined progress of the launches with the tokens, each in the region in
// which it was requested.
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

// Undo removes the marks from the node and abandons the launches with the tokens, each in the
// region in which it was requested. A nil node has no marks.
func (rs *Regions) Undo(ctx context.Context, node *corev1.Node, tokens []string) error {
	var errs []error
	if node != nil {
		b, err := rs.of(node)
		if err != nil {
			b = rs.all[0] // the marks are removed wherever the node is
		}
		errs = append(errs, b.Undo(ctx, node, nil))
	}
	return errors.Join(append(errs, rs.each(ctx, tokens, func(b *Backend,
		token []string) error {
		return b.Undo(ctx, nil, token)
	}))...)
}

// Settle ends the protection of the replacements with the tokens.
func (rs *Regions) Settle(ctx context.Context, tokens []string) error {
	return rs.each(ctx, tokens, func(b *Backend, token []string) error { return b.Settle(ctx, token) })
}

// each calls f with each token in its region. Unknown tokens are ignored.
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

// Cleanup removes the remains of unknown replacements in each region.
func (rs *Regions) Cleanup(ctx context.Context, draining, tokens []string) error {
	var errs []error
	for _, b := range rs.all {
		errs = append(errs, inRegion(b, b.Cleanup(ctx, draining, tokens)))
	}
	return errors.Join(errs...)
}

// Notice handles a notice from the provider. It returns the other controller that drains the node
// because of it, or ActorNone.
func (rs *Regions) Notice(n backend.Notice) policy.Actor {
	by := policy.ActorNone
	for _, b := range rs.all {
		by = max(by, b.Notice(n))
	}
	return by
}

// Conditions returns the conditions of a pool that concern its groups: the errors of all regions,
// except of those in which the pool has no groups.
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

// joined combines the conditions of several regions in one, with the reason of the first region by
// name.
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
