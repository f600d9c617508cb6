package scenarios

// A keyUse says what becomes of a key of what AWS describes.
type keyUse uint8

const (
	honoured    keyUse = iota
	meaningless        // nothing of a run depends on it
	warned             // a run is without it, and a warning says so
	denied             // a run without it would be another
)

// A describedKey is what becomes of a key, and why that is not to be honoured.
type describedKey struct {
	use keyUse
	why string
}

// awsGroupKeys are all keys of an Auto Scaling group, as AWS documents them: one that is not
// here is refused by name.
var awsGroupKeys = map[string]describedKey{
	"AutoScalingGroupName": {}, "MinSize": {}, "MaxSize": {}, "DesiredCapacity": {}, "AvailabilityZones": {}, "LaunchTemplate": {},
	"MixedInstancesPolicy": {}, "Tags": {}, "SuspendedProcesses": {}, "MaxInstanceLifetime": {}, "CapacityRebalance": {},
	"DesiredCapacityType": {}, "Instances": {}, "Status": {},

	"AutoScalingGroupARN":      {meaningless, "it names the group"},
	"CreatedTime":              {meaningless, "it is of the past"},
	"Context":                  {meaningless, "AWS keeps it for itself"},
	"Operator":                 {meaningless, "it names who keeps the group"},
	"ServiceLinkedRoleARN":     {meaningless, "it is of rights"},
	"DeletionProtection":       {meaningless, "groups are not deleted"},
	"SkipZonalShiftValidation": {meaningless, "groups are not changed"},
	"EnabledMetrics":           {meaningless, "it is of what is published"},
	"AvailabilityZoneIds":      {meaningless, "AvailabilityZones says the same"},
	"VPCZoneIdentifier":        {meaningless, "AvailabilityZones says where its subnets are"},
	"LoadBalancerNames":        {meaningless, "what serves is a pod that is ready"},
	"TargetGroupARNs":          {meaningless, "what serves is a pod that is ready"},
	"TrafficSources":           {meaningless, "what serves is a pod that is ready"},
	"HealthCheckType":          {meaningless, "an instance fails as it is reclaimed, and so all checks at once"},
	"HealthCheckGracePeriod":   {meaningless, "no new instance fails a check"},
	"DefaultCooldown": {meaningless,
		"it is of simple scaling policies, and the Cluster Autoscaler sets the size"},

	"PredictedCapacity":                {warned, "predictive scaling"},
	"LaunchConfigurationName":          {warned, "a launch configuration says more of instances than their type"},
	"DefaultInstanceWarmup":            {warned, "it delays scaling policies and refreshes"},
	"TerminationPolicies":              {warned, "the Cluster Autoscaler names the instance"},
	"NewInstancesProtectedFromScaleIn": {warned, "the Cluster Autoscaler names the instance"},
	"AvailabilityZoneDistribution":     {warned, "instances are balanced among zones"},
	"AvailabilityZoneImpairmentPolicy": {warned, "zonal shifts of groups"},
	"InstanceMaintenancePolicy":        {warned, "instances are ended before others replace them"},
	"InstanceLifecyclePolicy":          {warned, "instances that do not end"},

	"PlacementGroup":                   {denied, "placement groups are not simulated"},
	"WarmPoolConfiguration":            {denied, "warm pools are not simulated"},
	"WarmPoolSize":                     {denied, "warm pools are not simulated"},
	"CapacityReservationSpecification": {denied, "capacity reservations of Auto Scaling groups are not simulated"},
}

// eksGroupKeys are those of a managed node group.
var eksGroupKeys = map[string]describedKey{
	"nodegroupName": {}, "capacityType": {}, "instanceTypes": {}, "labels": {}, "taints": {}, "amiType": {}, "scalingConfig": {},
	"resources": {}, "status": {}, "subnets": {},

	"nodegroupArn":   {meaningless, "it names the group"},
	"clusterName":    {meaningless, "there is one cluster"},
	"createdAt":      {meaningless, "it is of the past"},
	"modifiedAt":     {meaningless, "it is of the past"},
	"version":        {meaningless, "nodes are not upgraded"},
	"releaseVersion": {meaningless, "nodes are not upgraded"},
	"health":         {meaningless, "it is of the moment"},
	"remoteAccess":   {meaningless, "it is of rights"},
	"nodeRole":       {meaningless, "it is of rights"},
	"tags":           {meaningless, "EKS gives them neither to nodes nor to the Auto Scaling group"},

	"updateConfig":     {warned, "nodes are not upgraded"},
	"nodeRepairConfig": {warned, "nodes do not fail but by reclaims"},
	"launchTemplate":   {warned, "it may say more of nodes than their type"},
	"diskSize":         {warned, "a node has the disk of the catalog"},

	"warmPoolConfig": {denied, "warm pools are not simulated"},
}

// answerKeys are the keys around the described objects in a response of AWS.
var answerKeys = map[string]describedKey{
	"AutoScalingGroups": {}, "nodegroup": {},
	"ResponseMetadata": {meaningless, "it is of the call"},
	"NextToken":        {denied, "the answer was cut: there are more groups; call without --max-items"},
	"nextToken":        {denied, "the answer was cut: there are more groups; call without --max-items"},
}
