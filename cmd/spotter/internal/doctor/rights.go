package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A need is a verb on a resource that a mode requires.
type need struct {
	verb, group, resource, name, namespace string

	// optional is the consequence of a missing right. It is empty if the controller cannot run
	// without it.
	optional string
}

// String returns the need in the form "list nodepools.karpenter.sh".
func (n *need) String() string {
	resource, sub, _ := strings.Cut(n.resource, "/")
	text := n.verb + " " + strings.TrimSuffix(resource+"."+n.group, ".")
	if sub != "" {
		text += "/" + sub
	}
	if n.namespace != "" {
		text += " in " + n.namespace
	}
	return text
}

// attributes returns the need in the form of an access review.
func (n *need) attributes() *authorizationv1.ResourceAttributes {
	resource, sub, _ := strings.Cut(n.resource, "/")
	return &authorizationv1.ResourceAttributes{Verb: n.verb, Group: n.group, Resource: resource, Subresource: sub,
		Name: n.name, Namespace: n.namespace}
}

// needs returns the distinct rights that a controller needs in a mode. It leaves out node classes
// of providers that are not installed, and secrets, whose namespaces are unknown.
func needs(mode, namespace string, karpenter bool) (all []need) {
	setup := rights.Setup{Active: mode == active, Parts: []rights.Part{rights.LeaderElection}}
	if karpenter {
		setup.Parts = append(setup.Parts, rights.Karpenter)
	}
	for _, r := range rights.Kubernetes() {
		if !setup.Needs(&r) || r.Scope == rights.Secrets || mode == active && !r.Active {
			continue
		}
		n := need{group: r.Group, optional: r.Without}
		if r.Scope == rights.OwnNamespace {
			n.namespace = namespace
		}
		for _, n.resource = range r.Resources {
			for _, n.name = range append(r.Names, "")[:max(1, len(r.Names))] {
				for _, n.verb = range r.Verbs {
					if !slices.Contains(all, n) {
						all = append(all, n)
					}
				}
			}
		}
	}
	return all
}

// reviewsMax is the maximum number of concurrent reviews.
const reviewsMax = 8

// missing returns the needs that this user is not granted, in their order.
func missing(ctx context.Context, c client.Client, all []need) ([]need, error) {
	denied := make([]bool, len(all))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(reviewsMax)
	for i := range all {
		g.Go(func() error {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: all[i].attributes()}}
			err := c.Create(ctx, review)
			denied[i] = !review.Status.Allowed
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var lacking []need
	for i := range all {
		if denied[i] {
			lacking = append(lacking, all[i])
		}
	}
	return lacking, nil
}

// checkRights checks the rights of both modes. Rights for active mode, which has the rights of
// shadow mode too, fail only if that mode is required.
func (f *doctorCall) checkRights(ctx context.Context, r *report, c client.Client, karpenter bool) {
	for _, mode := range []string{shadow, active} {
		name := "rights, " + mode
		all := needs(mode, f.namespace, karpenter)
		lacking, err := missing(ctx, c, all)
		if err != nil {
			r.fail(name,
				"request the right to create selfsubjectaccessreviews.authorization.k8s.io, which every user has by default", "they cannot be read: %s", cli.FirstLine(err))
			continue
		}
		var required, optional []string
		for i := range lacking {
			if lacking[i].optional == "" {
				required = append(required, lacking[i].String())
			} else {
				optional = append(optional, lacking[i].String())
			}
		}
		switch {
		case len(required) == 0 && len(optional) == 0:
			r.ok(name, "all %d", len(all))
		case len(required) == 0:
			r.ok(name, "all that are required; optional ones are missing: %s", cli.FirstOf(optional, namedMax))
		case mode == active && f.mode == shadow:
			r.skip(name, "%s missing, which shadow mode does not need", figures.Count(len(required), "right"))
		default:
			next := fmt.Sprintf("grant what docs/rights.md lists for %s mode to this user, or run Spotter as the chart's ServiceAccount", mode)
			r.fail(name, next, "%s missing: %s", figures.Count(len(required), "right"), cli.FirstOf(required, namedMax))
		}
	}
}

// namedMax is the maximum number of rights that are listed by name.
const namedMax = 4
