package rights

// Limits of statements, in addition to the account and the regions.
const (
	anything    = "*"
	pricing     = "*, in us-east-1"
	theGroups   = "groups with the tag `kubernetes.io/cluster/NAME`"
	theTags     = "groups with the tag `kubernetes.io/cluster/NAME`, tags `spotter.dev/…`"
	theManaged  = "managed node groups of the cluster"
	managedTags = "managed node groups of the cluster, tags `spotter.dev/…`"
	theQueue    = "the queue"
	theBucket   = "the bucket, under the prefix"
	theObjects  = "the bucket's objects under the prefix"
	theKey      = "the key"
)

// AWS returns the requests to AWS, grouped by part. Those of shadow mode are first in each part.
func AWS() []Permission {
	const own, managed = "Needed where the recording is encrypted with a key of yours.", "Needed for managed node groups only."
	return []Permission{
		{Part: Prices, Action: "ec2:DescribeAvailabilityZones", On: anything, Why: "The IDs of zones.",
			Without: "Placement scores are known only for zones whose IDs nodes or prices show."},
		{Part: Prices, Action: "ec2:DescribeInstanceTypeOfferings", On: anything, Why: "The types of a zone.",
			Without: "Types are known in zones where they have a Spot price."},
		{Part: Prices, Action: "ec2:DescribeInstanceTypes", On: anything,
			Why: "Sizes of types that the catalog does not know.", Without: "Those types are not known."},
		{Part: Prices, Action: "ec2:DescribeSpotPriceHistory", On: anything, Why: "Spot prices.",
			Without: "No Spot market is known."},
		{Part: Prices, Action: "ec2:GetSpotPlacementScores", On: anything, Why: "Placement scores.",
			Without: "No placement score is known."},
		{Part: Prices, Action: "pricing:GetProducts", On: pricing, Why: "Prices on demand.",
			Without: "On-demand prices come from the catalog."},
		{Part: Groups, Action: "autoscaling:DescribeAutoScalingGroups", On: anything, Why: "The groups and their instances."},
		{Part: Groups, Action: "autoscaling:DescribeLifecycleHooks", On: anything,
			Why: "Whether a hook delays the termination of an instance."},
		{Part: Groups, Action: "autoscaling:DescribeScalingActivities", On: anything,
			Why: "Results of launches, and refusals."},
		{Part: Groups, Action: "ec2:DescribeInstances", On: anything, Why: "How an instance was bought."},
		{Part: Groups, Action: "ec2:DescribeLaunchTemplateVersions", On: anything,
			Why: "The types that a group without overrides launches."},
		{Part: Groups, Action: "eks:DescribeNodegroup", On: theManaged, Why: "The tags in which launches are recorded."},
		{Part: Groups, Active: true, Action: "autoscaling:CreateOrUpdateTags", On: theTags,
			Why: "Recording a launch before it is requested."},
		{Part: Groups, Active: true, Action: "autoscaling:DeleteTags", On: theTags, Why: "Removing the record of a launch."},
		{Part: Groups, Active: true, Action: "autoscaling:SetDesiredCapacity", On: theGroups, Why: "Raising a group by one."},
		{Part: Groups, Active: true, Action: "autoscaling:SetInstanceProtection", On: theGroups,
			Why: "Keeping a replacement while pods move to it."},
		{Part: Groups, Active: true, Action: "autoscaling:TerminateInstanceInAutoScalingGroup", On: theGroups,
			Why: "Terminating one particular instance."},
		{Part: Groups, Active: true, Action: "autoscaling:UpdateAutoScalingGroup", On: theGroups,
			Why:     "Bounds and purchase options, where annotations of the pool allow them.",
			Without: "Pools with `spotter.dev/group-bounds` or `allowGroupReplacement` say so; others never request it."},
		{Part: Groups, Active: true, Action: "eks:TagResource", On: managedTags,
			Why: "Recording a launch of a managed node group.", Without: managed},
		{Part: Groups, Active: true, Action: "eks:UntagResource", On: managedTags, Why: "Removing that record.",
			Without: managed},
		{Part: Groups, Active: true, Action: "eks:UpdateNodegroupConfig", On: theManaged,
			Why: "Raising a managed node group by one.", Without: managed},
		{Part: Queue, Action: "sqs:DeleteMessage", On: theQueue,
			Why: "Messages that were read, also in shadow: the queue is Spotter's own."},
		{Part: Queue, Action: "sqs:ReceiveMessage", On: theQueue, Why: "Notices and recommendations."},
		{Part: Queue, Action: "kms:Decrypt", On: theKey,
			Without: "Needed where the queue is encrypted with a key of yours.", Why: "Reading them."},
		{Part: Bucket, Action: "s3:ListBucket", On: theBucket, Why: "The extent of the recording."},
		{Part: Bucket, Action: "s3:GetObject", On: theObjects, Why: "The owner of an existing segment."},
		{Part: Bucket, Action: "s3:PutObject", On: theObjects, Why: "The recording."},
		{Part: Bucket, Action: "kms:GenerateDataKey", On: theKey, Without: own, Why: "Writing it."},
		{Part: Bucket, Action: "kms:Decrypt", On: theKey, Without: own, Why: "Reading its objects."},
	}
}
