package scenarios

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	autoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	eks "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// mixedGroup is what `aws autoscaling describe-auto-scaling-groups` prints of a group that a
// managed node group made.
const mixedGroup = `{"AutoScalingGroups": [{
    "AutoScalingGroupName": "eks-web-1", "AutoScalingGroupARN": "arn:aws:autoscaling:us-east-1:1:autoScalingGroup:x",
    "MixedInstancesPolicy": {
        "LaunchTemplate": {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "web", "Version": "1"},
            "Overrides": [{"InstanceType": "m5.xlarge", "WeightedCapacity": "1"}, {"InstanceType": "m5a.xlarge"}]},
        "InstancesDistribution": {"OnDemandAllocationStrategy": "prioritized", "OnDemandBaseCapacity": 1, "OnDemandPercentageAboveBaseCapacity": 50,
            "SpotAllocationStrategy": "capacity-optimized"}},
    "MinSize": 1, "MaxSize": 8, "DesiredCapacity": 3, "DefaultCooldown": 300, "AvailabilityZones": ["us-east-1a", "us-east-1b"],
    "HealthCheckType": "EC2", "HealthCheckGracePeriod": 15, "CreatedTime": "2026-01-01T00:00:00+00:00",
    "Instances": [{"InstanceId": "i-1", "InstanceType": "m5.xlarge", "AvailabilityZone": "us-east-1a", "LifecycleState": "InService", "HealthStatus": "Healthy", "ProtectedFromScaleIn": false}],
    "SuspendedProcesses": [], "VPCZoneIdentifier": "subnet-1", "CapacityRebalance": true, "MaxInstanceLifetime": 86400,
    "Tags": [{"Key": "k8s.io/cluster-autoscaler/node-template/label/team", "Value": "a", "ResourceId": "eks-web-1", "ResourceType": "auto-scaling-group", "PropagateAtLaunch": true},
        {"Key": "k8s.io/cluster-autoscaler/node-template/taint/only", "Value": "web:NoSchedule"}]
}]}`

const eksNodegroup = `{"nodegroup": {
    "nodegroupName": "web", "nodegroupArn": "arn:aws:eks:x", "clusterName": "c", "capacityType": "SPOT", "instanceTypes": ["m5.large", "m5a.large"],
    "scalingConfig": {"minSize": 0, "maxSize": 5, "desiredSize": 2}, "subnets": ["subnet-1"], "amiType": "AL2023_x86_64_STANDARD", "nodeRole": "x",
    "labels": {"team": "b"}, "taints": [{"key": "spot", "value": "yes", "effect": "NO_SCHEDULE"}],
    "resources": {"autoScalingGroups": [{"name": "eks-web-1"}]}, "updateConfig": {"maxUnavailable": 1}, "status": "ACTIVE"
}}`

// besides returns a scenario whose pools are what AWS describes.
func besides(described ...string) string {
	return "apiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: own}\nspec: {duration: 24h}\n---\n" +
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n" +
		"    spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 100m, memory: 1Gi}}}]}\n---\n" +
		strings.Join(described, "\n---\n")
}

// TestDescribedGroups reads an Auto Scaling group and a managed node group, each by itself, and the
// managed node group together with the Auto Scaling group that it made.
func TestDescribedGroups(t *testing.T) {
	mixed := ScalingGroup{Min: 1, Max: 8, Desired: 3, OnDemandBase: 1, OnDemandPercent: 50,
		Types: []string{"m5.xlarge", "m5a.xlarge"}, Spot: CapacityOptimized, Prioritized: true}
	managed := ScalingGroup{Max: 5, Desired: 2, Types: []string{"m5.large", "m5a.large"}, Prioritized: true}
	for _, x := range []struct {
		file, pool, labels, taints, buys string
		want                             ScalingGroup
		warned                           []string
	}{
		{besides(mixedGroup), "eks-web-1", "[{team a}]", "only", "[on-demand spot]", mixed,
			[]string{"AZRebalance is taken as suspended", "CapacityRebalance has no effect"}},
		{besides(eksNodegroup), "web", "[{eks.amazonaws.com/capacityType SPOT} {eks.amazonaws.com/nodegroup web} {team b}]",
			"spot", "[spot]", managed, []string{"not simulated: updateConfig (nodes are not upgraded)", "in which zones"}},
		{besides(eksNodegroup, mixedGroup), "web",
			"[{eks.amazonaws.com/capacityType SPOT} {eks.amazonaws.com/nodegroup web} {team a}]", "only", "[on-demand spot]", mixed, nil},
	} {
		sc, err := Parse("own.yaml", []byte(x.file))
		if err != nil {
			t.Fatal(err)
		}
		tr, err := trace.Synthetic()
		if err != nil {
			t.Fatal(err)
		}
		w, err := Bind(sc, tr, BindOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p := &w.Pools[0]
		if len(w.Pools) != 1 || p.Name != x.pool || p.Provisioner != policy.ProvisionerClusterAutoscaler ||
			fmt.Sprint(p.Labels) != x.labels || p.Taints[0].Key != x.taints || fmt.Sprintf("%v", p.CapacityTypes) != x.buys {
			t.Errorf("pools %+v", w.Pools)
		}
		if !reflect.DeepEqual(*w.ScalingGroups[0], x.want) {
			t.Errorf("%s is read as %+v, want %+v", x.pool, *w.ScalingGroups[0], x.want)
		}
		for _, m := range p.Markets {
			if kind := w.Types[w.Markets[m].Type].Name; !strings.Contains(fmt.Sprint(x.want.Types), kind) ||
				x.want.Min == 1 && w.Zones[w.Markets[m].Zone] == "us-east-1c" {
				t.Errorf("%s may buy in %s", x.pool, w.Markets[m].Name)
			}
		}
		for _, said := range x.warned {
			if all := strings.Join(sc.Warnings, "\n"); !strings.Contains(all, said) {
				t.Errorf("no warning says %q: %s", said, all)
			}
		}
	}
	for n, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 2, 8: 5} {
		if got := mixed.OnDemandOf(n); got != want {
			t.Errorf("%d of %d on demand, want %d", got, n, want)
		}
	}
}

// TestDescribedGroupsRefused: no field is passed over, and each error names the file, the
// field and the value.
func TestDescribedGroupsRefused(t *testing.T) {
	for _, x := range []struct{ from, to, want string }{
		{`"WeightedCapacity": "1"`, `"WeightedCapacity": "2"`,
			`"MixedInstancesPolicy.LaunchTemplate.Overrides[0].WeightedCapacity": "2": the Cluster Autoscaler counts instances`},
		{`{"InstanceType": "m5a.xlarge"}`, `{"InstanceRequirements": {"VCpuCount": {"Min": 2}}}`,
			`Overrides[1].InstanceRequirements": types that are chosen by attributes`},
		{`"capacity-optimized"`, `"cheapest"`, `SpotAllocationStrategy": "cheapest" is not one of`},
		{`"OnDemandPercentageAboveBaseCapacity": 50`, `"OnDemandPercentageAboveBaseCapacity": 101`,
			`OnDemandPercentageAboveBaseCapacity": 101 is more than 100`},
		{`"MaxSize": 8`, `"MaxSize": 0`, `"MaxSize": 0 is below the least size, 1`},
		{`"DesiredCapacity": 3`, `"DesiredCapacity": 9`, `"DesiredCapacity": 9 is not from 1 to 8`},
		{`"SuspendedProcesses": []`, `"SuspendedProcesses": [{"ProcessName": "Launch"}]`, `"SuspendedProcesses[0]": Launch`},
		{`"CapacityRebalance": true`, `"WarmPoolConfiguration": {"MinSize": 1}`, `"WarmPoolConfiguration": warm pools`},
		{`"CapacityRebalance": true`, `"CapacityRebalancing": true`, `"CapacityRebalancing": unknown key; did you mean "CapacityRebalance"?`},
		{`"web:NoSchedule"`, `"web:Never"`, `"Tags[1].Value": "web:Never" is not a taint`},
		{`"InstanceType": "m5a.xlarge"`, `"InstanceType": "m5z.xlarge"`, `"m5z.xlarge"`},
		{`"capacityType": "SPOT"`, `"capacityType": "CAPACITY_BLOCK"`, `"capacityType": capacity blocks`},
		{`"effect": "NO_SCHEDULE"`, `"effect": "NEVER"`, `"taints[0].effect": "NEVER"`},
		{`"maxSize": 5`, `"maxSize": 1`, `"scalingConfig.desiredSize": 2 is not from 0 to 1`},
		{`"CapacityRebalance": true`, `"Status": "Delete in progress"`, `"Status": "Delete in progress": the group is being deleted`},
		{`"status": "ACTIVE"`, `"status": "DELETING"`, `"status": "DELETING": the group is being deleted`},
		{`{"AutoScalingGroups": [`, `{"NextToken": "x", "AutoScalingGroups": [`, `"NextToken": the answer was cut`},
		{`{"nodegroup": {`, `{"cluster": {}, "nodegroup": {`, `"cluster": unknown key of an answer`},
		{`"SpotAllocationStrategy":`, `"DistributionSegments": [{}], "SpotAllocationStrategy":`, `DistributionSegments": segments`},
		{`"AL2023_x86_64_STANDARD"`, `"WINDOWS_CORE_2022_x86_64"`, `"amiType": "WINDOWS`},
	} {
		which := mixedGroup
		if strings.Contains(eksNodegroup, x.from) {
			which = eksNodegroup
		}
		_, err := Parse("own.yaml", []byte(besides(strings.Replace(which, x.from, x.to, 1))))
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.HasPrefix(err.Error(), "own.yaml:") {
			t.Errorf("%s: error %v, want one of own.yaml with %q", x.to, err, x.want)
		}
	}
}

// TestDescribedKeys: all keys that AWS documents are read or have a reason why not, and no key is both.
func TestDescribedKeys(t *testing.T) {
	for _, x := range []struct {
		keys          map[string]unreadKey
		read, invents reflect.Type
		name          func(string) string
	}{
		{awsGroupKeys, reflect.TypeFor[awsGroup](), reflect.TypeFor[autoscaling.AutoScalingGroup](), func(s string) string { return s }},
		{eksGroupKeys, reflect.TypeFor[eksGroup](), reflect.TypeFor[eks.Nodegroup](),
			func(s string) string { return strings.ToLower(s[:1]) + s[1:] }},
	} {
		read := map[string]bool{}
		for f := range x.read.Fields() {
			if key := f.Tag.Get("json"); key != "-" {
				read[key] = true
			}
		}
		for f := range x.invents.Fields() {
			key := x.name(f.Name)
			if _, unread := x.keys[key]; f.IsExported() && read[key] == unread {
				t.Errorf("%v: %s: read %v, not read %v", x.read, key, read[key], unread)
			}
		}
		for key, k := range x.keys {
			if k.why == "" {
				t.Errorf("%v: %s has no reason", x.read, key)
			}
		}
	}
}
