package access

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/internal/cli"
)

// completionWait bounds how long shell completion waits for an API server.
const completionWait = 3 * time.Second

// Complete adds shell completion for those flags of [Cluster.Register] and [RegisterNamespace] that
// the command has.
func (c *Cluster) Complete(command *cobra.Command) {
	cli.CompleteBy(command, "context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = c.Kubeconfig
		raw, err := rules.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Sorted(maps.Keys(raw.Contexts)), cobra.ShellCompDirectiveNoFileComp
	})
	if command.Flags().Lookup("namespace") != nil {
		cli.CompleteBy(command, "namespace", c.Names(&corev1.NamespaceList{}))
	}
}

// Names completes the names of the cluster's objects of the kind of list.
func (c *Cluster) Names(list client.ObjectList) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp
		cfg, err := c.Config("completion")
		if err != nil {
			return nil, directive
		}
		reader, err := Client(cfg)
		if err != nil {
			return nil, directive
		}
		ctx, stop := context.WithTimeout(command.Context(), completionWait)
		defer stop()
		if reader.List(ctx, list) != nil {
			return nil, directive
		}
		all, err := meta.ExtractList(list)
		if err != nil {
			return nil, directive
		}
		for _, o := range all {
			if o, is := o.(client.Object); is {
				names = append(names, o.GetName())
			}
		}
		slices.Sort(names)
		return names, directive
	}
}
