package rights

// What statements are limited to, beside the account and the regions.
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
	var all []Permission
	for _, part := range [][]Permission{pricePermissions(), groupPermissions(), groupWrites(), queuePermissions(), bucketPermissions()} {
		all = append(all, part...)
	}
	return all
}

func pricePermissions() []Permission {
	var all []Permission
	for _, p := range []struct{ action, on, why, without string }{
		{"ec2:DescribeAvailabilityZones", anything, "By which IDs zones go.", "Placement scores are known for zones whose IDs nodes or prices tell."},
		{"ec2:DescribeInstanceTypeOfferings", anything, "Which types a zone has.", "Types are known in zones where they have a spot price."},
		{"ec2:DescribeInstanceTypes", anything, "Sizes of types that the catalog does not know.", "Those types are not known."},
		{"ec2:DescribeSpotPriceHistory", anything, "Spot prices.", "No spot market is known."},
		{"ec2:GetSpotPlacementScores", anything, "Placement scores.", "No placement score is known."},
		{"pricing:GetProducts", pricing, "Prices on demand.", "Those of the catalog stand in."},
	} {
		all = append(all, Permission{Part: Prices, Action: p.action, On: p.on, Why: p.why, Without: p.without})
	}
	return all
}

func groupPermissions() []Permission {
	var all []Permission
	for _, p := range []struct{ action, why string }{
		{"autoscaling:DescribeAutoScalingGroups", "The groups and their instances."},
		{"autoscaling:DescribeLifecycleHooks", "Whether a hook holds up the end of an instance."},
		{"autoscaling:DescribeScalingActivities", "What a launch brought, and refusals."},
		{"ec2:DescribeInstances", "How an instance was bought."},
		{"ec2:DescribeLaunchTemplateVersions", "What a group without overrides launches."},
	} {
		all = append(all, Permission{Part: Groups, Action: p.action, On: anything, Why: p.why})
	}
	return append(all, Permission{Part: Groups, Action: "eks:DescribeNodegroup", On: theManaged, Why: "The tags in which launches are written down."})
}

func groupWrites() []Permission {
	var all []Permission
	for _, p := range []struct{ action, on, why, without string }{
		{"autoscaling:CreateOrUpdateTags", theTags, "Writing a launch down before it is asked for.", ""},
		{"autoscaling:DeleteTags", theTags, "Striking a launch out.", ""},
		{"autoscaling:SetDesiredCapacity", theGroups, "Raising a group by one.", ""},
		{"autoscaling:SetInstanceProtection", theGroups, "Keeping a replacement while pods move to it.", ""},
		{"autoscaling:TerminateInstanceInAutoScalingGroup", theGroups, "Giving one certain instance back.", ""},
		{"autoscaling:UpdateAutoScalingGroup", theGroups, "Bounds and purchase options, where annotations of the pool allow them.",
			"Pools with `spotter.dev/group-bounds` or `spotter.dev/allow-group-replacement` say so; others never ask for it."},
		{"eks:TagResource", managedTags, "Writing a launch of a managed node group down.", "Needed for managed node groups only."},
		{"eks:UntagResource", managedTags, "Striking it out.", "Needed for managed node groups only."},
		{"eks:UpdateNodegroupConfig", theManaged, "Raising a managed node group by one.", "Needed for managed node groups only."},
	} {
		all = append(all, Permission{Part: Groups, Active: true, Action: p.action, On: p.on, Why: p.why, Without: p.without})
	}
	return all
}

func queuePermissions() []Permission {
	return []Permission{
		{Part: Queue, Action: "sqs:DeleteMessage", On: theQueue, Why: "Messages that were read, also in shadow: the queue is Spotter's own."},
		{Part: Queue, Action: "sqs:ReceiveMessage", On: theQueue, Why: "Notices and recommendations."},
		{Part: Queue, Action: "kms:Decrypt", On: theKey, Without: "Needed where the queue is encrypted with a key of yours.", Why: "Reading them."},
	}
}

func bucketPermissions() []Permission {
	const own = "Needed where the recording is encrypted with a key of yours."
	return []Permission{
		{Part: Bucket, Action: "s3:ListBucket", On: theBucket, Why: "How far the recording goes."},
		{Part: Bucket, Action: "s3:GetObject", On: theObjects, Why: "Whose a segment is that is there already."},
		{Part: Bucket, Action: "s3:PutObject", On: theObjects, Why: "The recording."},
		{Part: Bucket, Action: "kms:GenerateDataKey", On: theKey, Without: own, Why: "Writing it."},
		{Part: Bucket, Action: "kms:Decrypt", On: theKey, Without: own, Why: "Reading what is there."},
	}
}
