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

// A device is one that a driver of resource claims hands out.
type device struct{ driver, pool, name string }

// A claim is the part of a ResourceClaim that budgets read.
type claim struct {
	devices []device          // the accelerators that are allocated
	pods    map[string]string // UIDs of the pods that hold them, by "namespace/name"
}

// A claimTable holds the ResourceClaims and the devices that ResourceSlices describe. Pods
// are read again when what they hold changes.
type claimTable struct {
	pods   *podSlots
	nodes  *nodeSlots
	claims map[string]*claim           // by "namespace/name"
	slices map[string]map[device]int64 // by the name of the slice; units of devices
	units  map[device]int64            // of all slices

	// holders counts by device the claims by which a pod holds it.
	holders map[device]map[string]int
}

func newClaimTable(pods *podSlots, nodes *nodeSlots) *claimTable {
	return &claimTable{
		pods: pods, nodes: nodes, claims: map[string]*claim{}, slices: map[string]map[device]int64{}, units: map[device]int64{},
		holders: map[device]map[string]int{},
	}
}

// readClaim returns the part of c that budgets read. Access for administration holds no
// device.
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

// replace puts x in the place of the claim of a name; nil for none.
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

// hold adds n to the count of the pods of x for each of its devices.
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

// touchHolders marks the pods of x, and those that share a device with them, to be read again.
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

// unitsIn returns the units of the accelerators that a slice describes. Those of which it
// is not known what part of a device they are have 0.
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

// attribute returns a text that the driver of s states of a device, empty if it does not.
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

// describe puts the devices of a slice in the place of those that it had.
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
	for _, s := range t.slices { // a newer slice may describe a device before the older one is gone
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

// A holding is what a pod holds in addition to whole devices that it requests.
type holding struct {
	uses    []policy.DeviceUse
	unknown bool // and more that is not known
}

// of returns what a pod holds, nil if its specification is complete. before is what it held when it
// was last read: a pod holds its devices until it is gone, and its claim may appear released before
// its end does.
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

// replicated reports whether a pod requests replicas.
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

// replicas returns in how many a node divides a device or slice, by the label that NVIDIA's
// feature discovery gives to it; 0 where that is not known.
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

// claimNames returns the names of the claims of a pod; empty for one that does not exist
// yet.
func claimNames(p *corev1.Pod) []string {
	var all []string
	for i := range p.Spec.ResourceClaims {
		c := &p.Spec.ResourceClaims[i]
		name := c.ResourceClaimName
		for k := range p.Status.ResourceClaimStatuses {
			if s := &p.Status.ResourceClaimStatuses[k]; name == nil && s.Name == c.Name {
				if name = s.ResourceClaimName; name == nil {
					name = new(string) // none was needed
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

// add adds what p holds by one of its claims. A device that several pods hold is divided
// among them evenly, so that it counts once.
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
		// The parts differ by a thousandth at most, and their sum is the device.
		all.Add(resource, ((rank+1)*total/n-rank*total/n)/int64(holders[key(p)]))
	}
}
