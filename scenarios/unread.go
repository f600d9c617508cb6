package scenarios

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A keyUse is the treatment of a key that is known but not read.
type keyUse uint8

const (
	meaningless keyUse = iota // it has no effect on a run
	warned                    // a run ignores it, with a warning
	denied                    // a run that ignored it would be wrong, so it is an error
)

// An unreadKey is the treatment of a key, optionally with the reason.
type unreadKey struct {
	use keyUse
	why string
}

// partlyRead is implemented by types with keys that are known but not read.
type partlyRead interface{ unreadKeys() map[string]unreadKey }

func (*awsGroup) unreadKeys() map[string]unreadKey         { return awsGroupKeys }
func (*awsTag) unreadKeys() map[string]unreadKey           { return awsTagKeys }
func (*suspended) unreadKeys() map[string]unreadKey        { return suspendedKeys }
func (*instance) unreadKeys() map[string]unreadKey         { return instanceKeys }
func (*eksGroup) unreadKeys() map[string]unreadKey         { return eksGroupKeys }
func (*ec2NodeClassSpec) unreadKeys() map[string]unreadKey { return ec2ClassKeys }
func (*amiTerm) unreadKeys() map[string]unreadKey          { return amiTermKeys }
func (*kubeletSpec) unreadKeys() map[string]unreadKey      { return kubeletKeys }
func (*ebsSpec) unreadKeys() map[string]unreadKey          { return ebsKeys }
func (*eksNodeClassSpec) unreadKeys() map[string]unreadKey { return eksClassKeys }
func (*eksStorage) unreadKeys() map[string]unreadKey       { return eksStorageKeys }

// An unreadValue is the value of an unread key in a document.
type unreadValue struct {
	unreadKey
	path  []string
	value *yaml.Node
}

// unreadValues returns the names of the keys that a run ignores with a warning, ascending, and
// errors for the keys that a run must not ignore. Keys with an empty value are skipped.
func (d *document) unreadValues() (idle []string, errs []error) {
	for _, x := range d.unread {
		name := strings.TrimPrefix(joinPath(x.path), "spec.")
		switch {
		case len(x.value.Content) == 0 && slices.Contains([]string{"", "null", "false", "0"}, x.value.Value):
		case x.use == denied:
			errs = append(errs, d.problem(x.path, "%s", x.why))
		case x.use == warned && x.why != "":
			idle = append(idle, name+" ("+x.why+")")
		case x.use == warned:
			idle = append(idle, name)
		}
	}
	slices.Sort(idle)
	return idle, errs
}

// unreadAll returns a map in which all keys have the same use.
func unreadAll(use keyUse, keys ...string) map[string]unreadKey {
	m := map[string]unreadKey{}
	for _, key := range keys {
		m[key] = unreadKey{use: use}
	}
	return m
}

// Keys in responses of AWS that are not simulated.
var (
	awsTagKeys    = unreadAll(meaningless, "ResourceId", "ResourceType", "PropagateAtLaunch")
	suspendedKeys = unreadAll(meaningless, "SuspensionReason")
	instanceKeys  = unreadAll(meaningless, "InstanceId", "AvailabilityZone", "LifecycleState", "HealthStatus", "LaunchTemplate",
		"LaunchConfigurationName", "ProtectedFromScaleIn", "WeightedCapacity", "ImageId", "AvailabilityZoneId")
)

// Keys of node classes that are not simulated. Karpenter does not count soft eviction (types.go,
// evictionThreshold and pods).
var (
	ec2ClassKeys = map[string]unreadKey{
		"placementGroupSelector": {denied, "placement groups are not simulated"},
		"networkInterfaces":      {denied, "network interfaces, which take addresses of pods, are not simulated"},
		"cpuOptions":             {denied, "it leaves out instance types, and which is not known"},

		"capacityReservationSelectorTerms": {why: "status.capacityReservations says what it selects"},
		"subnetSelectorTerms":              {why: "status.subnets says what it selects"},

		"securityGroupSelectorTerms": {use: warned}, "associatePublicIPAddress": {use: warned}, "ipPrefixCount": {use: warned},
		"userData": {use: warned}, "role": {use: warned}, "instanceProfile": {use: warned}, "tags": {use: warned},
		"detailedMonitoring": {use: warned}, "metadataOptions": {use: warned}, "connectionTracking": {use: warned},
		"context": {use: warned},
	}
	eksClassKeys = map[string]unreadKey{
		"placementGroupSelector":           ec2ClassKeys["placementGroupSelector"],
		"capacityReservationSelectorTerms": ec2ClassKeys["capacityReservationSelectorTerms"],
		"subnetSelectorTerms":              ec2ClassKeys["subnetSelectorTerms"],

		"securityGroupSelectorTerms": {use: warned}, "podSubnetSelectorTerms": {use: warned},
		"podSecurityGroupSelectorTerms": {use: warned}, "role": {use: warned}, "instanceProfile": {use: warned},
		"snatPolicy": {use: warned}, "networkPolicy": {use: warned}, "networkPolicyEventLogs": {use: warned},
		"advancedNetworking": {use: warned}, "advancedSecurity": {use: warned}, "certificateBundles": {use: warned},
		"tags": {use: warned},
	}
	kubeletKeys = unreadAll(warned, "evictionSoft", "evictionSoftGracePeriod", "evictionMaxPodGracePeriod", "clusterDNS",
		"imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "cpuCFSQuota")
	amiTermKeys = unreadAll(meaningless, "tags", "id", "name", "owner", "ssmParameter")
	ebsKeys     = unreadAll(meaningless, "deleteOnTermination", "encrypted", "kmsKeyID", "snapshotID", "volumeInitializationRate")

	eksStorageKeys = unreadAll(warned, "kmsKeyID")
)

// awsGroupKeys are the unread keys of an Auto Scaling group, according to the AWS documentation.
var awsGroupKeys = map[string]unreadKey{
	"AutoScalingGroupARN":      {meaningless, "it names the group"},
	"LaunchTemplate":           {meaningless, "its instances have the type that it launches"},
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

// eksGroupKeys are the unread keys of a managed node group.
var eksGroupKeys = map[string]unreadKey{
	"subnets":        {meaningless, "they do not say in which zones it launches"},
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

// answerKeys are the top-level keys of a response of AWS, with those of the described objects.
var answerKeys = map[string]unreadKey{
	"AutoScalingGroups": {}, "nodegroup": {},
	"ResponseMetadata": {meaningless, "it is of the call"},
	"NextToken":        {denied, "the answer was cut: there are more groups; call without --max-items"},
	"nextToken":        {denied, "the answer was cut: there are more groups; call without --max-items"},
}
