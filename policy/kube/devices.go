package kube

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
)

// Resource names of NVIDIA's device plugin. The suffix marks replicas, which share the time of a
// device or of a MIG slice.
const (
	nvidiaGPU    = "nvidia.com/gpu"
	migPrefix    = "nvidia.com/mig-"
	sharedSuffix = ".shared"
)

// DeviceUnits is the number of units in a device. It is divisible by seven and by four: MIG divides
// most models into seven compute slices, and some into four.
const DeviceUnits = 28

// quarters are the MIG profiles that exist only on models with four compute slices (A30, RTX PRO
// 6000). A profile such as 1g.24gb is missing because models with seven slices have it too.
var quarters = []string{"1g.6gb", "2g.12gb", "4g.24gb", "2g.48gb", "4g.96gb"}

// profileForm matches MIG profiles: "3g.20gb", with an optional prefix for fewer compute slices
// ("1c.3g.20gb") and optional attributes at the end ("+me", in resource names ".me").
var profileForm = regexp.MustCompile(`^(?:([1-7])c\.)?(([1-7])g\.[0-9]+gb)(?:[.+].+)?$`)

// ProfileUnits returns the number of units of a device that a MIG profile uses, derived from its
// compute slices. The result is false if profile is not the name of a MIG profile.
func ProfileUnits(profile string) (int64, bool) {
	m := profileForm.FindStringSubmatch(profile)
	if m == nil {
		return 0, false
	}
	n, all := int64(cmp.Or(m[1], m[3])[0]-'0'), int64(7)
	if slices.Contains(quarters, m[2]) {
		all = 4
	}
	return min(n*DeviceUnits/all, DeviceUnits), true
}

// unitsOf returns the number of units of an nvidia.com/gpu that one item of the extended resource
// name represents. The result is false if the resource is not a slice or a replica.
func unitsOf(name string) (int64, bool) {
	name, shared := strings.CutSuffix(name, sharedSuffix)
	if profile, mig := strings.CutPrefix(name, migPrefix); mig {
		return ProfileUnits(profile)
	}
	return DeviceUnits, shared && name == nvidiaGPU
}

// SliceOf returns the accelerator that the resource name is a slice or a replica of. The result is
// false for other resources.
func SliceOf(name string) (string, bool) {
	_, ok := unitsOf(name)
	return nvidiaGPU, ok
}

// Replicated returns the resource that the replicas called name divide. The result is false if name
// is not a resource of replicas.
func Replicated(name string) (string, bool) {
	_, known := unitsOf(name)
	name, shared := strings.CutSuffix(name, sharedSuffix)
	return name, known && shared
}

// claimDrivers maps the drivers whose devices pods get through resource claims to the extended
// resources under which budgets count these devices.
var claimDrivers = map[string]string{
	"gpu.nvidia.com": nvidiaGPU, "gpu.amd.com": "amd.com/gpu", "gaudi.intel.com": "habana.ai/gaudi", "neuron.aws.com": "aws.amazon.com/neuron",
}

// Claimed returns the accelerator that a driver of resource claims allocates. The result is false
// for drivers of other devices.
func Claimed(driver string) (string, bool) {
	resource, known := claimDrivers[driver]
	return resource, known
}

// Devices adds up the accelerators that one pod uses other than as whole devices. The zero value is
// empty.
type Devices struct {
	// Unknown reports whether the pod uses devices that could not be counted.
	Unknown bool

	thousandths map[string]int64
}

// Request adds the slices and replicas that a pod requests. A replica counts as a whole device or
// slice divided by replicas(of), where of is the resource that it divides. If replicas is nil, each
// replica counts as a whole device or slice.
func (d *Devices) Request(total corev1.ResourceList, replicas func(of string) int64) {
	sum := int64(0) // in thousandths of a unit, so that seven sevenths add up to exactly one
	for _, k := range slices.Sorted(maps.Keys(total)) {
		units, ok := unitsOf(string(k))
		q := total[k]
		if !ok || q.Sign() <= 0 {
			d.Unknown = d.Unknown || q.Sign() > 0 && strings.HasPrefix(string(k), migPrefix)
			continue
		}
		if most := requestMax(k); q.Cmp(most) > 0 {
			q = most
		}
		n := int64(1)
		if of, is := Replicated(string(k)); is && replicas != nil {
			n = max(1, replicas(of))
		}
		sum += q.Value() * units * 1000 / n
	}
	d.Add(nvidiaGPU, (sum+DeviceUnits/2)/DeviceUnits)
}

// Add adds thousandths of a device of a resource.
func (d *Devices) Add(resource string, thousandths int64) {
	if thousandths == 0 {
		return
	}
	if d.thousandths == nil {
		d.thousandths = map[string]int64{}
	}
	d.thousandths[resource] += thousandths
}

// Uses returns the total per resource in thousandths of a device, ascending by resource; nil if it
// is empty.
func (d *Devices) Uses() []policy.DeviceUse {
	var all []policy.DeviceUse
	for k, n := range d.thousandths {
		all = append(all, policy.DeviceUse{Resource: k, Amount: n})
	}
	slices.SortFunc(all, func(a, b policy.DeviceUse) int { return cmp.Compare(a.Resource, b.Resource) })
	return all
}
