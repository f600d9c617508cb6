// Package asg works on Auto Scaling groups and EKS managed node groups, together with the Cluster
// Autoscaler that grows and shrinks them.
//
// A CapacityPool names the tags by which its groups are found. The types, zones and purchase
// options of a group determine the markets in which it buys. Reading never changes anything:
// [Backend.Poll] reports every instance, refused launches and the last steer of each pool to the
// sink. Only the methods of [backend.Backend] and [Backend.Cleanup] write.
//
// Three rules avoid conflicts with the Cluster Autoscaler, which writes absolute sizes from a
// cache. First, Spotter only ever increases the desired size, by one and based on a new read; the
// size decreases only when Spotter terminates a specific instance with decrement. Second, Spotter
// leaves nodes with the ToBeDeleted taint to the Cluster Autoscaler. Third, both nodes of a
// replacement have the scale-down-disabled annotation until the replacement has ended, unless the
// user has set a value of it.
//
// A [Backend] works in one region. [Regions] combines the backends of several regions, and is what
// a controller uses: a pool may have groups in all of them.
//
// # Records of launches
//
// Spotter records a launch before it increases the desired size, in a tag of the group named
// spotter.dev/launch-TOKEN (or of the managed node group, whose Auto Scaling group Spotter may not
// write). The tag is deleted with the group, is read with it at no cost, needs no other store and
// can be read by any user. It names the newest scaling activity before the launch. The instance of
// the launch is therefore the first instance of a later activity that belongs to no other launch.
// Spotter never compares its own clock with that of AWS. A recorded token is never requested again:
// a crash can lose a launch, which then counts as failed, but cannot duplicate it.
//
// # Permissions
//
// Observing, and so shadow mode, needs only [ReadActions]. Active pools also need [WriteActions].
package asg

// ReadActions are the IAM actions that observing needs.
var ReadActions = []string{
	"autoscaling:DescribeAutoScalingGroups",
	"autoscaling:DescribeLifecycleHooks",
	"autoscaling:DescribeScalingActivities",
	"ec2:DescribeInstances",
	"ec2:DescribeLaunchTemplateVersions",
	"eks:DescribeNodegroup",
}

// WriteActions are the IAM actions that active pools need in addition. UpdateAutoScalingGroup is
// called only for pools that allow it with [AnnotationBounds] or allowGroupReplacement.
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
