package rights

// What statements are limited to, in addition to the account and the regions.
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

// AWS returns what AWS is asked for, by part, what shadow mode needs first.
func AWS() []Permission {
	const own, managed = "Needed where the recording is encrypted with a key of yours.", "Needed for managed node groups only."
	return []Permission{
		{Part: Prices, Action: "ec2:DescribeAvailabilityZones", On: anything, Why: "By which IDs zones go.", Without: "Placement scores are known for zones whose IDs nodes or prices tell."},
		{Part: Prices, Action: "ec2:DescribeInstanceTypeOfferings", On: anything, Why: "Which types a zone has.", Without: "Types are known in zones where they have a Spot price."},
		{Part: Prices, Action: "ec2:DescribeInstanceTypes", On: anything, Why: "Sizes of types that the catalog does not know.", Without: "Those types are not known."},
		{Part: Prices, Action: "ec2:DescribeSpotPriceHistory", On: anything, Why: "Spot prices.", Without: "No Spot market is known."},
		{Part: Prices, Action: "ec2:GetSpotPlacementScores", On: anything, Why: "Placement scores.", Without: "No placement score is known."},
		{Part: Prices, Action: "pricing:GetProducts", On: pricing, Why: "Prices on demand.", Without: "Those of the catalog are used."},
		{Part: Groups, Action: "autoscaling:DescribeAutoScalingGroups", On: anything, Why: "The groups and their instances."},
		{Part: Groups, Action: "autoscaling:DescribeLifecycleHooks", On: anything, Why: "Whether a hook holds up the end of an instance."},
		{Part: Groups, Action: "autoscaling:DescribeScalingActivities", On: anything, Why: "What a launch brought, and refusals."},
		{Part: Groups, Action: "ec2:DescribeInstances", On: anything, Why: "How an instance was bought."},
		{Part: Groups, Action: "ec2:DescribeLaunchTemplateVersions", On: anything, Why: "What a group without overrides launches."},
		{Part: Groups, Action: "eks:DescribeNodegroup", On: theManaged, Why: "The tags in which launches are written down."},
		{Part: Groups, Active: true, Action: "autoscaling:CreateOrUpdateTags", On: theTags, Why: "Recording a launch before it is requested."},
		{Part: Groups, Active: true, Action: "autoscaling:DeleteTags", On: theTags, Why: "Striking a launch out."},
		{Part: Groups, Active: true, Action: "autoscaling:SetDesiredCapacity", On: theGroups, Why: "Raising a group by one."},
		{Part: Groups, Active: true, Action: "autoscaling:SetInstanceProtection", On: theGroups, Why: "Keeping a replacement while pods move to it."},
		{Part: Groups, Active: true, Action: "autoscaling:TerminateInstanceInAutoScalingGroup", On: theGroups, Why: "Giving one certain instance back."},
		{Part: Groups, Active: true, Action: "autoscaling:UpdateAutoScalingGroup", On: theGroups, Why: "Bounds and purchase options, where annotations of the pool allow them.",
			Without: "Pools with `spotter.dev/group-bounds` or `allowGroupReplacement` say so; others never request it."},
		{Part: Groups, Active: true, Action: "eks:TagResource", On: managedTags, Why: "Writing a launch of a managed node group down.", Without: managed},
		{Part: Groups, Active: true, Action: "eks:UntagResource", On: managedTags, Why: "Striking it out.", Without: managed},
		{Part: Groups, Active: true, Action: "eks:UpdateNodegroupConfig", On: theManaged, Why: "Raising a managed node group by one.", Without: managed},
		{Part: Queue, Action: "sqs:DeleteMessage", On: theQueue, Why: "Messages that were read, also in shadow: the queue is Spotter's own."},
		{Part: Queue, Action: "sqs:ReceiveMessage", On: theQueue, Why: "Notices and recommendations."},
		{Part: Queue, Action: "kms:Decrypt", On: theKey, Without: "Needed where the queue is encrypted with a key of yours.", Why: "Reading them."},
		{Part: Bucket, Action: "s3:ListBucket", On: theBucket, Why: "How far the recording goes."},
		{Part: Bucket, Action: "s3:GetObject", On: theObjects, Why: "The owner of an existing segment."},
		{Part: Bucket, Action: "s3:PutObject", On: theObjects, Why: "The recording."},
		{Part: Bucket, Action: "kms:GenerateDataKey", On: theKey, Without: own, Why: "Writing it."},
		{Part: Bucket, Action: "kms:Decrypt", On: theKey, Without: own, Why: "Reading what is there."},
	}
}
