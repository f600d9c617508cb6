package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/asg"
	"github.com/spotter-dev/spotter/live/aws/wire"
	"github.com/spotter-dev/spotter/live/backend"
)

// restoreGroups restores the original settings of the Auto Scaling groups of the cluster.
func (c *cleaner) restoreGroups(ctx context.Context) error {
	regions := c.call.regions
	if len(regions) == 0 {
		var err error
		if regions, err = c.regions(ctx); err != nil {
			return err
		}
	}
	if len(regions) == 0 {
		fmt.Fprintln(c.notes,
			"no node says in which region of AWS it is: no Auto Scaling group was looked for; name regions by --region")
		return nil
	}
	base, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(regions[0]), wire.Silent)
	if err != nil {
		return cli.Invalid(fmt.Errorf("AWS: %w", err), "give credentials as the AWS CLI takes them")
	}
	groups, err := asg.Restore(ctx, asg.DefaultConfig(), regions, base, c.client, c.call.dryRun)
	for _, g := range groups {
		c.result.Objects = append(c.result.Objects, cleanedObject{"Auto Scaling group", g.Region + "/" + g.Group, g.What})
	}
	if held := (*backend.Held)(nil); errors.As(err, &held) && (held.Reason == asg.ReasonDenied ||
		held.Reason == asg.ReasonExpired) {
		return cli.Invalid(err, "run it again with credentials that are valid and allow it: docs/rights.md lists the actions")
	}
	return err
}

// regions returns the AWS regions in which the cluster has nodes, ascending.
func (c *cleaner) regions(ctx context.Context) ([]string, error) {
	var nodes corev1.NodeList
	if err := c.client.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing each node: %w", err)
	}
	var all []string
	for i := range nodes.Items {
		region := nodes.Items[i].Labels[corev1.LabelTopologyRegion]
		if strings.HasPrefix(nodes.Items[i].Spec.ProviderID, "aws://") && region != "" && !slices.Contains(all, region) {
			all = append(all, region)
		}
	}
	slices.Sort(all)
	return all, nil
}
