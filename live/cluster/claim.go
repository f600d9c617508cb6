package cluster

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A device identifies a device that a driver allocates to resource claims.
type device struct{ driver, pool, name string }

// A claim is the part of a ResourceClaim that GPU budgets use.
type claim struct {
	devices []device          // the allocated accelerators
	pods    map[string]string // UIDs of the pods that use the devices, by "namespace/name"
}

// A claimTable contains the ResourceClaims and the devices in ResourceSlices. Pods are marked to be
// read again when their devices change.
type claimTable struct {
	pods   *podSlots
	nodes  *nodeSlots
	claims map[string]*claim           // by "namespace/name"
	slices map[string]map[device]int64 // units of devices, by name of the slice
	units  map[device]int64            // maximum over all slices

	// holders counts, by device and pod, the claims through which the pod holds the device.
	holders map[device]map[string]int
}

func newClaimTable(pods *podSlots, nodes *nodeSlots) *claimTable {
	return &claimTable{
		pods: pods, nodes: nodes, claims: map[string]*claim{}, slices: map[string]map[device]int64{}, units: map[device]int64{},
		holders: map[device]map[string]int{},
	}
}

// readClaim returns the part of c that GPU budgets use. Devices with administrative access are not
// counted.
func readClaim(c *resourcev1.ResourceClaim) *claim {
	x := &claim{pods: map[string]string{}}
	if c.Status.Allocation != nil {
		for _, r := range c.Status.Allocation.Devices.Results {
			if _, counted := kube.Claimed(r.Driver); counted && (r.AdminAccess == nil || !*r.AdminAccess) {
				x.devices = append(x.devices, device{r.Driver, r.Pool, r.Device})
			}
		}
	}
	for _, r := range c.Status.ReservedFor {
		if r.APIGroup == "" && r.Resource == "pods" {
			x.pods[c.Namespace+"/"+r.Name] = string(r.UID)
		}
	}
	return x
}

func (t *claimTable) setClaim(c *resourcev1.ResourceClaim) { t.replace(key(c), readClaim(c)) }

func (t *claimTable) dropClaim(c *resourcev1.ResourceClaim) { t.replace(key(c), nil) }

// replace replaces the claim with a name by x; nil deletes it.
func (t *claimTable) replace(name string, x *claim) {
	before := t.claims[name]
	if before != nil {
		t.hold(before, -1)
		t.touchHolders(before)
		delete(t.claims, name)
	}
	if x != nil {
		t.claims[name] = x
		t.hold(x, 1)
		t.touchHolders(x)
	}
}

// hold adds n to the holder counts of the pods of x for each of its devices.
func (t *claimTable) hold(x *claim, n int) {
	for _, d := range x.devices {
		if t.holders[d] == nil {
			t.holders[d] = map[string]int{}
		}
		for pod := range x.pods {
			if t.holders[d][pod] += n; t.holders[d][pod] == 0 {
				delete(t.holders[d], pod)
			}
		}
		if len(t.holders[d]) == 0 {
			delete(t.holders, d)
		}
	}
}

// touchHolders marks the pods of x, and the pods that share a device with them, to be read again.
func (t *claimTable) touchHolders(x *claim) {
	touch := func(pod string) {
		if i, known := t.pods.byName[pod]; known {
			t.pods.touch(i)
		}
	}
	for pod := range x.pods {
		touch(pod)
	}
	for _, d := range x.devices {
		for pod := range t.holders[d] {
			touch(pod)
		}
	}
}

// unitsIn returns the units of the accelerators in a slice. A partition of unknown size has 0
// units.
func unitsIn(s *resourcev1.ResourceSlice) map[device]int64 {
	if _, counted := kube.Claimed(s.Spec.Driver); !counted {
		return nil
	}
	all := make(map[device]int64, len(s.Spec.Devices))
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		units := int64(kube.DeviceUnits)
		profile, kind := attribute(s, d, "profile"), attribute(s, d, "type")
		switch {
		case profile != "":
			units, _ = kube.ProfileUnits(profile)
		case kind == "mig" || strings.Contains(kind, "partition"):
			units = 0
		}
		all[device{s.Spec.Driver, s.Spec.Pool.Name, d.Name}] = units
	}
	return all
}

// attribute returns a string attribute of a device of s; empty if the driver does not set it.
func attribute(s *resourcev1.ResourceSlice, d *resourcev1.Device, name string) string {
	for _, k := range []string{name, s.Spec.Driver + "/" + name} {
		if v, ok := d.Attributes[resourcev1.QualifiedName(k)]; ok && v.StringValue != nil {
			return *v.StringValue
		}
	}
	return ""
}

func (t *claimTable) setSlice(s *resourcev1.ResourceSlice) { t.describe(s.Name, unitsIn(s)) }

func (t *claimTable) dropSlice(s *resourcev1.ResourceSlice) { t.describe(s.Name, nil) }

// describe replaces the devices of a slice.
func (t *claimTable) describe(slice string, units map[device]int64) {
	before := t.slices[slice]
	if maps.Equal(before, units) {
		return
	}
	if t.slices[slice] = units; len(units) == 0 {
		delete(t.slices, slice)
	}
	changed := map[device]bool{}
	for d := range before {
		delete(t.units, d)
		changed[d] = true
	}
	for d := range units {
		changed[d] = true
	}
	for _, s := range t.slices { // a newer slice may describe a device before the older slice is deleted
		for d := range changed {
			if n, has := s[d]; has {
				t.units[d] = max(t.units[d], n)
			}
		}
	}
	for d := range changed {
		t.touchHolders(&claim{devices: []device{d}})
	}
}

// A holding contains the devices that a pod holds in addition to the whole devices that it
// requests.
type holding struct {
	uses    []policy.DeviceUse
	unknown bool // the pod holds more devices, which are not known
}

// of returns the holding of a pod; nil if its specification is complete. before is the holding at
// the last read: a pod holds its devices until it has ended, and the release of its claim may be
// observed before the end of the pod.
func (t *claimTable) of(p *corev1.Pod, before *holding) *holding {
	if len(p.Spec.ResourceClaims) == 0 && !replicated(&p.Spec) {
		return nil
	}
	var d kube.Devices
	d.Request(kube.Requests(&p.Spec), func(of string) int64 { return t.replicas(p.Spec.NodeName, of) })
	for _, name := range claimNames(p) {
		t.add(&d, name, p)
	}
	if d.Unknown && before != nil && !before.unknown {
		return before
	}
	return &holding{d.Uses(), d.Unknown}
}

// replicated reports whether a pod requests shared devices (replicas).
func replicated(s *corev1.PodSpec) bool {
	return slices.ContainsFunc(s.Containers, func(c corev1.Container) bool {
		for k := range c.Resources.Limits { // extended resources have limits
			if _, is := kube.Replicated(string(k)); is {
				return true
			}
		}
		return false
	})
}

// replicas returns the number of replicas of a device or slice on a node, according to the label
// set by NVIDIA's GPU feature discovery; 0 if it is not known.
func (t *claimTable) replicas(node, of string) int64 {
	i, known := t.nodes.byName[node]
	if !known {
		return 0
	}
	n, err := strconv.ParseInt(t.nodes.entries[i].object.Labels[of+".replicas"], 10, 32)
	if err != nil {
		return 0
	}
	return n
}

// claimNames returns the names of the claims of a pod. The name of a claim that does not exist yet
// is empty.
func claimNames(p *corev1.Pod) []string {
	var all []string
	for i := range p.Spec.ResourceClaims {
		c := &p.Spec.ResourceClaims[i]
		name := c.ResourceClaimName
		for k := range p.Status.ResourceClaimStatuses {
			if s := &p.Status.ResourceClaimStatuses[k]; name == nil && s.Name == c.Name {
				if name = s.ResourceClaimName; name == nil {
					name = new(string) // no claim was needed
				}
			}
		}
		switch {
		case name == nil:
			all = append(all, "")
		case *name != "":
			all = append(all, *name)
		}
	}
	return all
}

// add adds the devices that p holds through one of its claims. A device that several pods hold is
// divided evenly among them, so that it counts once.
func (t *claimTable) add(all *kube.Devices, name string, p *corev1.Pod) {
	c := t.claims[p.Namespace+"/"+name]
	if c == nil || c.pods[key(p)] != string(p.UID) {
		all.Unknown = true
		return
	}
	for _, d := range c.devices {
		units, holders := t.units[d], t.holders[d]
		if units == 0 {
			all.Unknown = true
			continue
		}
		resource, _ := kube.Claimed(d.driver)
		total, n, rank := (units*1000+kube.DeviceUnits/2)/kube.DeviceUnits, int64(len(holders)), int64(0)
		for pod := range holders {
			if pod < key(p) {
				rank++
			}
		}
		// The parts differ by at most a thousandth, and add up to the device.
		all.Add(resource, ((rank+1)*total/n-rank*total/n)/int64(holders[key(p)]))
	}
}
