// Package asg works on Auto Scaling groups and EKS managed node groups, together with
// the Cluster Autoscaler that grows and shrinks them.
//
// A group is found by the tags that a CapacityPool names; its types, zones and
// purchase options say which markets it buys in. Reading never changes anything:
// [Backend.Poll] reports to the sink every instance, refused launches and
// the last steer that a pool got. Only the calls of [backend.Backend] and
// [Backend.Cleanup] write.
//
// Three rules keep the peace with the Cluster Autoscaler, which writes absolute
// sizes from a cache. The desired size is only ever raised, by one and from a read
// made for it; it goes down only by terminating one certain instance with
// decrement. Nodes that carry its ToBeDeleted taint are its own. And both nodes of
// a swap carry its scale-down-disabled annotation until the swap has ended, unless
// the user has set a value there.
//
// A [Backend] works in one region. [Regions] are several of them as one backend, and
// what a controller uses: a pool may have groups in all.
//
// # What a launch leaves behind
//
// A launch is recorded before the desired size is raised, as a tag of the group named
// spotter.dev/launch-TOKEN (or of the managed node group, whose Auto Scaling group Spotter may not
// write). The tag lives and dies with the group, is read with it at no cost, needs no other store
// and can be read by any user. It names the newest scaling activity before the launch, so the
// instance of the launch is the first one of a later activity that no other launch has. No clock of
// Spotter is compared with one of AWS. A recorded token is never requested again, so a crash at any
// point can lose a launch, which then counts as failed, but cannot double one.
//
// # Permissions
//
// [ReadActions] are all that observing needs, and all that shadow mode ever calls. Active pools
// also need [WriteActions].
package asg

// ReadActions are the actions of IAM that watching needs.
var ReadActions = []string{
	"autoscaling:DescribeAutoScalingGroups",
	"autoscaling:DescribeLifecycleHooks",
	"autoscaling:DescribeScalingActivities",
	"ec2:DescribeInstances",
	"ec2:DescribeLaunchTemplateVersions",
	"eks:DescribeNodegroup",
}

// WriteActions are the actions of IAM that active pools need in addition. UpdateAutoScalingGroup is
// called only for pools that allow it by [AnnotationBounds] or allowGroupReplacement.
var WriteActions = []string{
	"autoscaling:CreateOrUpdateTags",
	"autoscaling:DeleteTags",
	"autoscaling:SetDesiredCapacity",
	"autoscaling:SetInstanceProtection",
	"autoscaling:TerminateInstanceInAutoScalingGroup",
	"autoscaling:UpdateAutoScalingGroup",
	"eks:TagResource",
	"eks:UntagResource",
	"eks:UpdateNodegroupConfig",
}
