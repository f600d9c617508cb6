package asg

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	scaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	compute "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	managed "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/spotter-dev/spotter/live/aws/wire"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A cloud is a client of the AWS APIs that the backend uses. Reads follow all pages. Every write
// calls the fence first.
type cloud struct {
	scaling *autoscaling.Client
	compute *ec2.Client
	managed *eks.Client
	fence   func(context.Context) error
	keys    sdk.CredentialsProvider // nil if the caller signs no requests
}

func newCloud(cfg *Config, base sdk.Config) *cloud {
	retryer := func() sdk.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = cfg.AttemptsMax, cfg.BackoffMax
		})
	}
	at := func(base *string) *string { // base is the endpoint set by the caller or by AWS_ENDPOINT_URL
		if cfg.Endpoint == "" {
			return base
		}
		return &cfg.Endpoint
	}
	base = base.Copy()
	base.Region = cfg.Region
	base.RetryMaxAttempts, base.HTTPClient = 0, wire.Client(base.HTTPClient)
	c := &cloud{fence: cfg.Fence, keys: base.Credentials}
	base.APIOptions = append(slices.Clone(base.APIOptions), c.fenced)
	c.scaling = autoscaling.NewFromConfig(base, func(o *autoscaling.Options) {
		o.Retryer, o.BaseEndpoint = retryer(),
			at(o.BaseEndpoint)
	})
	c.compute = ec2.NewFromConfig(base, func(o *ec2.Options) { o.Retryer, o.BaseEndpoint = retryer(), at(o.BaseEndpoint) })
	c.managed = eks.NewFromConfig(base, func(o *eks.Options) { o.Retryer, o.BaseEndpoint = retryer(), at(o.BaseEndpoint) })
	return c
}

// keysMax is the maximum time to retrieve credentials.
const keysMax = 10 * time.Second

// blame returns err, or a credentials error if there are no valid credentials: a request without
// credentials fails before it is sent.
func (c *cloud) blame(ctx context.Context, err error) error {
	if kindOf(err) != kindUnknown || c.keys == nil || ctx.Err() != nil {
		return err
	}
	short, stop := context.WithTimeout(ctx, keysMax)
	defer stop()
	if _, no := c.keys.Retrieve(short); no != nil && ctx.Err() == nil {
		return backend.Hold(ReasonNoKeys, "no AWS credentials found: %s; %s", wire.CredentialsFault(no), wire.RoleAdvice)
	}
	return err
}

// groups returns the groups that have all of the tags. An empty value matches any value.
func (c *cloud) groups(ctx context.Context, tags map[string]string) ([]scaling.AutoScalingGroup, error) {
	in := &autoscaling.DescribeAutoScalingGroupsInput{MaxRecords: sdk.Int32(100)}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		f := scaling.Filter{Name: sdk.String("tag:" + k), Values: []string{tags[k]}}
		if tags[k] == "" {
			f = scaling.Filter{Name: sdk.String("tag-key"), Values: []string{k}}
		}
		in.Filters = append(in.Filters, f)
	}
	var all []scaling.AutoScalingGroup
	for p := autoscaling.NewDescribeAutoScalingGroupsPaginator(c.scaling, in); p.HasMorePages(); {
		out, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, out.AutoScalingGroups...)
	}
	return all, nil
}

// group returns one group; nil if it does not exist.
func (c *cloud) group(ctx context.Context, name string) (*scaling.AutoScalingGroup, error) {
	out, err := c.scaling.DescribeAutoScalingGroups(ctx,
		&autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}})
	if err != nil || len(out.AutoScalingGroups) == 0 {
		return nil, err
	}
	return &out.AutoScalingGroups[0], nil
}

// activitiesMax is the number of newest scaling activities that are read for a group.
const activitiesMax = 50

// activities returns the newest scaling activities of a group, newest first; at least activitiesMax
// of them if there are as many.
func (c *cloud) activities(ctx context.Context, name string) ([]activity, error) {
	in := &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: &name, MaxRecords: sdk.Int32(activitiesMax)}
	var all []activity
	for p := autoscaling.NewDescribeScalingActivitiesPaginator(c.scaling, in); p.HasMorePages() &&
		len(all) < activitiesMax; {
		out, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for i := range out.Activities {
			all = append(all, activityOf(&out.Activities[i]))
		}
	}
	return all, nil
}

// hooked reports whether a lifecycle hook delays the termination of the group's instances.
func (c *cloud) hooked(ctx context.Context, name string) (bool, error) {
	out, err := c.scaling.DescribeLifecycleHooks(ctx,
		&autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: &name})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(out.LifecycleHooks, func(h scaling.LifecycleHook) bool {
		return sdk.ToString(h.LifecycleTransition) == "autoscaling:EC2_INSTANCE_TERMINATING"
	}), nil
}

// A bought records the purchase option and the launch time of an instance. EC2 still reports an
// instance for a while after it has ended.
type bought struct {
	spot, ended bool
	at          policy.Time
}

// instances returns the purchase of each instance, by ID. Instances that EC2 does not know yet are
// omitted.
func (c *cloud) instances(ctx context.Context, ids []string) (map[string]bought, error) {
	const filterMax = 200 // maximum number of values of one filter (AWS documentation, DescribeInstances)
	found := map[string]bought{}
	for part := range slices.Chunk(ids, filterMax) {
		in := &ec2.DescribeInstancesInput{Filters: []compute.Filter{{Name: sdk.String("instance-id"), Values: part}}}
		for p := ec2.NewDescribeInstancesPaginator(c.compute, in); p.HasMorePages(); {
			out, err := p.NextPage(ctx)
			if err != nil {
				return found, err
			}
			for _, r := range out.Reservations {
				for _, i := range r.Instances {
					ended := i.State != nil && (i.State.Name == compute.InstanceStateNameTerminated ||
						i.State.Name == compute.InstanceStateNameShuttingDown)
					found[sdk.ToString(i.InstanceId)] = bought{i.InstanceLifecycle == compute.InstanceLifecycleTypeSpot, ended,
						timeOf(i.LaunchTime)}
				}
			}
		}
	}
	return found, nil
}

func timeOf(t *time.Time) policy.Time {
	if t == nil {
		return 0
	}
	return policy.TimeOf(*t)
}

// A template contains the fields of a launch template that determine the market of a group.
type template struct {
	kind string
	spot bool
}

// template returns a version of a launch template; the zero template if it does not exist.
func (c *cloud) template(ctx context.Context, id, version string) (template, error) {
	out, err := c.compute.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateId: &id, Versions: []string{version}})
	if err != nil || len(out.LaunchTemplateVersions) == 0 || out.LaunchTemplateVersions[0].LaunchTemplateData == nil {
		return template{}, err
	}
	d := out.LaunchTemplateVersions[0].LaunchTemplateData
	return template{string(d.InstanceType), d.InstanceMarketOptions != nil &&
		d.InstanceMarketOptions.MarketType == compute.MarketTypeSpot}, nil
}

// nodegroup returns a managed node group.
func (c *cloud) nodegroup(ctx context.Context, cluster, name string) (*managed.Nodegroup, error) {
	out, err := c.managed.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &cluster, NodegroupName: &name})
	if err != nil {
		return nil, err
	}
	return out.Nodegroup, nil
}

// activityOf converts a scaling activity. It finds the instance and the zone in the description and
// details, whose wording is that of AWS: "Launching a new EC2 instance: i-…".
func activityOf(x *scaling.Activity) activity {
	a := activity{id: sdk.ToString(x.ActivityId), start: timeOf(x.StartTime)}
	description := sdk.ToString(x.Description)
	a.launches = strings.HasPrefix(description, "Launching")
	if !a.launches {
		return a
	}
	if _, after, ok := strings.Cut(description, "instance: "); ok {
		a.instance, _, _ = strings.Cut(after, " ")
	}
	a.failed = x.StatusCode == scaling.ScalingActivityStatusCodeFailed ||
		x.StatusCode == scaling.ScalingActivityStatusCodeCancelled
	a.refused = a.failed && lacksCapacity(description+sdk.ToString(x.StatusMessage))
	if _, after, ok := strings.Cut(sdk.ToString(x.Details), `"Availability Zone":"`); ok {
		a.zone, _, _ = strings.Cut(after, `"`)
	}
	return a
}
