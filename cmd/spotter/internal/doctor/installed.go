package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/crd"
)

// The versions of Karpenter that Spotter supports: karpenterLeast is the first with
// karpenter.sh/v1, and the versions from karpenterTried to karpenterNewest are tested.
const (
	karpenterLeast  = "1.0"
	karpenterTried  = "1.12"
	karpenterNewest = "1.15"
)

// checkKarpenter checks the version of Karpenter, and reports whether rights for Karpenter are
// required.
func checkKarpenter(ctx context.Context, r *report, c client.Client, cfg *rest.Config) bool {
	const name, upgrade = "Karpenter", "upgrade Karpenter to 1.0 or later, as its migration guide describes"
	served, err := karpenterAPIs(cfg)
	switch {
	case err != nil:
		r.fail(name, "check that `kubectl api-resources` works", "the API groups cannot be read: %s", cli.FirstLine(err))
		return true
	case len(served) == 0:
		r.skip(name, "not installed; Auto Scaling groups and Rackspace Spot do not need it")
		return false
	case !served["v1"]:
		r.fail(name, upgrade, "its API is of a version before karpenter.sh/v1")
		return true
	}
	found := karpenterVersion(ctx, c)
	v, err := version.ParseGeneric(found)
	tried := fmt.Sprintf("Spotter is tested with %s to %s", karpenterTried, karpenterNewest)
	switch {
	case err != nil:
		r.ok(name, "karpenter.sh/v1; its version cannot be read from its Deployment; %s", tried)
	case v.LessThan(version.MustParseGeneric(karpenterLeast)):
		r.fail(name, upgrade, "%s is older than %s", found, karpenterLeast)
	case version.MustParseGeneric(majorMinor(v)).LessThan(version.MustParseGeneric(karpenterTried)),
		version.MustParseGeneric(karpenterNewest).LessThan(version.MustParseGeneric(majorMinor(v))):
		r.ok(name, "%s; %s", found, tried)
	default:
		r.ok(name, "%s", found)
	}
	return true
}

func majorMinor(v *version.Version) string { return fmt.Sprintf("%d.%d", v.Major(), v.Minor()) }

// karpenterAPIs returns the versions of the API group karpenter.sh.
func karpenterAPIs(cfg *rest.Config) (map[string]bool, error) {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	groups, err := d.ServerGroups()
	if err != nil {
		return nil, err
	}
	served := map[string]bool{}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			if g.Name == "karpenter.sh" {
				served[v.Version] = true
			}
		}
	}
	return served, nil
}

// karpenterVersion returns the version of the Karpenter Deployment, from its label or otherwise
// from its image. It is empty if neither can be read, as in EKS Auto Mode.
func karpenterVersion(ctx context.Context, c client.Client) string {
	var all appsv1.DeploymentList
	if err := c.List(ctx, &all, client.MatchingLabels{"app.kubernetes.io/name": "karpenter"}); err != nil {
		return ""
	}
	for i := range all.Items {
		d := &all.Items[i]
		if v := d.Labels["app.kubernetes.io/version"]; v != "" {
			return strings.TrimPrefix(v, "v")
		}
		for _, x := range d.Spec.Template.Spec.Containers {
			image, _, _ := strings.Cut(x.Image, "@")
			if at := strings.LastIndexByte(image, ':'); at > strings.LastIndexByte(image, '/') {
				return strings.TrimPrefix(image[at+1:], "v")
			}
		}
	}
	return ""
}

// checkDefinitions compares the installed definitions with those of this version.
func checkDefinitions(ctx context.Context, r *report, c client.Client) {
	const name, install = "definitions", "spotter crds | kubectl apply --server-side -f -"
	var absent, others []string
	for _, want := range crd.Objects() {
		var have apiextensionsv1.CustomResourceDefinition
		err := c.Get(ctx, client.ObjectKeyFromObject(want), &have)
		switch {
		case apierrors.IsNotFound(err):
			absent = append(absent, want.Spec.Names.Kind)
		case apierrors.IsForbidden(err):
			r.skip(name, "not checked: this user may not read CustomResourceDefinitions")
			return
		case err != nil:
			r.fail(name, "check that `kubectl get crd` works", "they cannot be read: %s", cli.FirstLine(err))
			return
		case !sameSchemas(want, &have):
			others = append(others, want.Spec.Names.Kind)
		}
	}
	switch {
	case len(absent) > 0:
		r.fail(name, install, "not installed: %s", strings.Join(absent, ", "))
	case len(others) > 0:
		r.fail(name, install, "of another version of Spotter: %s", strings.Join(others, ", "))
	default:
		r.ok(name, "CapacityPool, GPUBudget, SpotNode and SpotPlan of this version")
	}
}

// sameSchemas reports whether two definitions have the same versions with the same schemas. It
// ignores all other fields, some of which an API server sets.
func sameSchemas(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return reflect.DeepEqual(schemasOf(a), schemasOf(b))
}

func schemasOf(d *apiextensionsv1.CustomResourceDefinition) map[string]any {
	all := map[string]any{}
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		text, err := json.Marshal(v.Schema)
		var schema any
		if err != nil || json.Unmarshal(text, &schema) != nil {
			schema = string(text)
		}
		all[fmt.Sprint(v.Name, v.Served, v.Storage)] = schema
	}
	return all
}
