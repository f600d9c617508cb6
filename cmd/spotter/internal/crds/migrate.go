package crds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/policy/figures"
)

// pageSize is the number of objects that are read at a time.
const pageSize = 500

func migrateCommand(p *cli.Program) *cobra.Command {
	var cluster access.Cluster
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Store every object of Spotter in the version that is stored now",
		Long: "migrate has the API server write every object of Spotter again, unchanged, so that none is\n" +
			"stored in an older version of its definition, and removes that version from the\n" +
			"definition's status.storedVersions. Only then can a release no longer serve it. It may be\n" +
			"run again, also while a controller runs.",
		Example: "  spotter crds migrate",
		Args:    cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := cluster.Config(p.Version)
			if err != nil {
				return err
			}
			api, err := access.Client(cfg, apiextensionsv1.AddToScheme)
			if err != nil {
				return err
			}
			for _, d := range crd.Objects() {
				said, err := migrate(c.Context(), api, d.Name)
				if err != nil {
					return fmt.Errorf("CustomResourceDefinition %s: %w", d.Name, err)
				}
				fmt.Fprintf(p.Stdout, "%s: %s\n", d.Name, said)
			}
			return nil
		},
	}
	cluster.Register(c.Flags())
	cluster.Complete(c)
	return c
}

// migrate rewrites the objects of a definition in the storage version, removes other versions from
// its status, and returns a description of what it did.
func migrate(ctx context.Context, api client.Client, name string) (string, error) {
	var d apiextensionsv1.CustomResourceDefinition
	if err := api.Get(ctx, client.ObjectKey{Name: name}, &d); err != nil {
		if apierrors.IsNotFound(err) {
			return "",
				cli.Invalid(errors.New("it is not installed"), "install it: spotter crds | kubectl apply --server-side -f -")
		}
		return "", err
	}
	at := slices.IndexFunc(d.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	if at < 0 { // an API server does not accept that
		return "", errors.New("no version is stored")
	}
	stored := []string{d.Spec.Versions[at].Name}
	if slices.Equal(d.Status.StoredVersions, stored) {
		return "all objects are stored as " + stored[0], nil
	}
	written, err := rewrite(ctx, api, schema.GroupVersionKind{Group: d.Spec.Group, Version: stored[0],
		Kind: d.Spec.Names.ListKind})
	if err != nil {
		return "", err
	}
	former := d.Status.StoredVersions
	d.Status.StoredVersions = stored
	// If the definition was changed since, it may have another storage version. The update then
	// fails.
	if err := api.Status().Update(ctx, &d); err != nil {
		return "", fmt.Errorf("writing status.storedVersions: %w", err)
	}
	return fmt.Sprintf("%s written again as %s; stored before as %s", figures.Count(written, "object"), stored[0],
		strings.Join(former, " and ")), nil
}

// rewrite updates all objects of a kind, unchanged, and returns how many it wrote. An object that was
// changed or deleted since it was read needs no update.
func rewrite(ctx context.Context, api client.Client, kind schema.GroupVersionKind) (written int, err error) {
	var page unstructured.UnstructuredList
	page.SetGroupVersionKind(kind)
	for next := ""; ; {
		if err := api.List(ctx, &page, client.Limit(pageSize), client.Continue(next)); err != nil {
			return written, err
		}
		for i := range page.Items {
			o := &page.Items[i]
			switch err := api.Update(ctx, o); {
			case err == nil:
				written++
			case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
				return written, fmt.Errorf("writing %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
			}
		}
		if next = page.GetContinue(); next == "" {
			return written, nil
		}
	}
}
