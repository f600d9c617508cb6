package rights

// A Limit is what limits a statement, in addition to the account and the regions.
type Limit string

const (
	limitRegions     Limit = "*"
	limitPricing     Limit = "*, in us-east-1"
	limitGroups      Limit = "groups with the tag `kubernetes.io/cluster/NAME`"
	limitGroupTags   Limit = "groups with the tag `kubernetes.io/cluster/NAME`, tags `spotter.dev/…`"
	limitManaged     Limit = "managed node groups of the cluster"
	limitManagedTags Limit = "managed node groups of the cluster, tags `spotter.dev/…`"
	limitQueue       Limit = "the queue"
	limitBucket      Limit = "the bucket, under the prefix"
	limitObjects     Limit = "the bucket's objects under the prefix"
	limitKey         Limit = "the key"
)

// AWS returns the requests to AWS, grouped by part. Those of shadow mode are first in each part.
func AWS() []Permission {
	const own, managed = "Needed where the recording is encrypted with a key of yours.", "Needed for managed node groups only."
	return []Permission{
		{Part: Prices, Action: "ec2:DescribeAvailabilityZones", On: limitRegions, Why: "The IDs of zones.",
			Without: "Placement scores are known only for zones whose IDs nodes or prices show."},
		{Part: Prices, Action: "ec2:DescribeInstanceTypeOfferings", On: limitRegions, Why: "The types of a zone.",
			Without: "Types are known in zones where they have a Spot price."},
		{Part: Prices, Action: "ec2:DescribeInstanceTypes", On: limitRegions,
			Why: "Sizes of types that the catalog does not know.", Without: "Those types are not known."},
		{Part: Prices, Action: "ec2:DescribeSpotPriceHistory", On: limitRegions, Why: "Spot prices.",
			Without: "No Spot market is known."},
		{Part: Prices, Action: "ec2:GetSpotPlacementScores", On: limitRegions, Why: "Placement scores.",
			Without: "No placement score is known."},
		{Part: Prices, Action: "pricing:GetProducts", On: limitPricing, Why: "Prices on demand.",
			Without: "On-demand prices come from the catalog."},
		{Part: Groups, Action: "autoscaling:DescribeAutoScalingGroups", On: limitRegions, Why: "The groups and their instances."},
		{Part: Groups, Action: "autoscaling:DescribeLifecycleHooks", On: limitRegions,
			Why: "Whether a hook delays the termination of an instance."},
		{Part: Groups, Action: "autoscaling:DescribeScalingActivities", On: limitRegions,
			Why: "Results of launches, and refusals."},
		{Part: Groups, Action: "ec2:DescribeInstances", On: limitRegions, Why: "How an instance was bought."},
		{Part: Groups, Action: "ec2:DescribeLaunchTemplateVersions", On: limitRegions,
			Why: "The types that a group without overrides launches."},
		{Part: Groups, Action: "eks:DescribeNodegroup", On: limitManaged, Why: "The tags in which launches are recorded."},
		{Part: Groups, Active: true, Action: "autoscaling:CreateOrUpdateTags", On: limitGroupTags,
			Why: "Recording a launch before it is requested."},
		{Part: Groups, Active: true, Action: "autoscaling:DeleteTags", On: limitGroupTags, Why: "Removing the record of a launch."},
		{Part: Groups, Active: true, Action: "autoscaling:SetDesiredCapacity", On: limitGroups, Why: "Raising a group by one."},
		{Part: Groups, Active: true, Action: "autoscaling:SetInstanceProtection", On: limitGroups,
			Why: "Keeping a replacement while pods move to it."},
		{Part: Groups, Active: true, Action: "autoscaling:TerminateInstanceInAutoScalingGroup", On: limitGroups,
			Why: "Terminating one particular instance."},
		{Part: Groups, Active: true, Action: "autoscaling:UpdateAutoScalingGroup", On: limitGroups,
			Why:     "Bounds and purchase options, where annotations of the pool allow them.",
			Without: "Pools with `spotter.dev/group-bounds` or `allowGroupReplacement` say so; others never request it."},
		{Part: Groups, Active: true, Action: "eks:TagResource", On: limitManagedTags,
			Why: "Recording a launch of a managed node group.", Without: managed},
		{Part: Groups, Active: true, Action: "eks:UntagResource", On: limitManagedTags, Why: "Removing that record.",
			Without: managed},
		{Part: Groups, Active: true, Action: "eks:UpdateNodegroupConfig", On: limitManaged,
			Why: "Raising a managed node group by one.", Without: managed},
		{Part: Queue, Action: "sqs:DeleteMessage", On: limitQueue,
			Why: "Messages that were read, also in shadow: the queue is Spotter's own."},
		{Part: Queue, Action: "sqs:ReceiveMessage", On: limitQueue, Why: "Notices and recommendations."},
		{Part: Queue, Action: "kms:Decrypt", On: limitKey,
			Without: "Needed where the queue is encrypted with a key of yours.", Why: "Reading them."},
		{Part: Bucket, Action: "s3:ListBucket", On: limitBucket, Why: "The extent of the recording."},
		{Part: Bucket, Action: "s3:GetObject", On: limitObjects, Why: "The owner of an existing segment."},
		{Part: Bucket, Action: "s3:PutObject", On: limitObjects, Why: "The recording."},
		{Part: Bucket, Action: "kms:GenerateDataKey", On: limitKey, Without: own, Why: "Writing it."},
		{Part: Bucket, Action: "kms:Decrypt", On: limitKey, Without: own, Why: "Reading its objects."},
	}
}
