package scenarios

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// anything is the type of a field of which only the presence matters.
type anything = metav1.FieldsV1

// An ec2NodeClass contains the fields of Karpenter's EC2NodeClass that determine the size of nodes
// and their zones. Subnets and reservations are read from its status by key.
type ec2NodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ec2NodeClassSpec `json:"spec"`
}

type ec2NodeClassSpec struct {
	AMIFamily           string        `json:"amiFamily"`
	AMISelectorTerms    []amiTerm     `json:"amiSelectorTerms"`
	Kubelet             kubeletSpec   `json:"kubelet"`
	BlockDeviceMappings []blockDevice `json:"blockDeviceMappings"`
	InstanceStorePolicy string        `json:"instanceStorePolicy"`
}

type amiTerm struct {
	Alias string `json:"alias"`
}

type kubeletSpec struct {
	MaxPods        *int32            `json:"maxPods"`
	PodsPerCore    *int32            `json:"podsPerCore"`
	SystemReserved map[string]string `json:"systemReserved"`
	KubeReserved   map[string]string `json:"kubeReserved"`
	EvictionHard   map[string]string `json:"evictionHard"`
}

type blockDevice struct {
	DeviceName string  `json:"deviceName"`
	RootVolume bool    `json:"rootVolume"`
	EBS        ebsSpec `json:"ebs"`
}

type ebsSpec struct {
	VolumeSize *resource.Quantity `json:"volumeSize"`
	VolumeType string             `json:"volumeType"`
	IOPS       *int64             `json:"iops"`
	Throughput *int64             `json:"throughput"` // MiB/s
}

// A nodeClass is the effect of an EC2NodeClass, or of a NodeClass of EKS Auto Mode, on the nodes of
// a NodePool.
type nodeClass struct {
	doc   *document
	kind  string
	name  string
	nodes catalog.NodeClass

	// zones are the zones of its subnets, by zone id; empty if they are unknown.
	zones map[string]string

	// reservations are the capacity reservations that it selects.
	reservations []reservedSpec

	// volumes are the volumes that are billed with each node.
	volumes []catalog.Volume

	// unbilled describes what is unknown about its volumes.
	unbilled []string

	// disk reports that the size of the disk is unknown because the instance store is used.
	disk bool
	used bool
}

// readNodeClass reads an EC2NodeClass.
func (sc *Scenario) readNodeClass(doc *document, o *ec2NodeClass) []error {
	c, errs := sc.newNodeClass(doc, "EC2NodeClass", o.Name)
	fail := func(path []string, format string, args ...any) {
		errs = append(errs, doc.problem(append([]string{"spec"}, path...), format, args...))
	}
	family := readFamily(&o.Spec, fail)
	c.nodes.Bottlerocket = family == "bottlerocket"
	c.readKubelet(&o.Spec.Kubelet, fail)
	c.readDisk(&o.Spec, family, fail)
	c.readVolumes(&o.Spec, family, fail)
	return errs
}

// newNodeClass adds a node class with the fields that EC2NodeClass and NodeClass share.
func (sc *Scenario) newNodeClass(doc *document, kind, name string) (*nodeClass, []error) {
	c := &nodeClass{doc: doc, kind: kind, name: name, zones: map[string]string{}}
	idle, errs := doc.unreadValues()
	for i := 0; doc.at([]string{"status", "subnets", Index(i)}) != nil; i++ {
		if zone := doc.scalar("status", "subnets", Index(i), "zone"); zone != "" {
			c.zones[cmp.Or(doc.scalar("status", "subnets", Index(i), "zoneID"), zone)] = zone
		}
	}
	if len(c.zones) == 0 && doc.at([]string{"spec", "subnetSelectorTerms"}) != nil {
		sc.warn("%s %s: which zones subnetSelectorTerms selects is known by status.subnets alone, which is not there: it may buy in all zones", kind, name)
	}
	if len(idle) > 0 {
		sc.warn("%s %s: not simulated: %s", kind, name, strings.Join(idle, ", "))
	}
	errs = append(errs, c.readReservations()...)
	sc.classes = append(sc.classes, c)
	return c, errs
}

// families maps image families, as in amiFamily and aliases, to the reason why one is not
// supported, or "".
var families = map[string]string{
	"al2": "", "al2023": "", "bottlerocket": "", "custom": "",
	"windows2019": "nodes of Windows are not simulated", "windows2022": "nodes of Windows are not simulated", "windows2025": "nodes of Windows are not simulated",
}

// readFamily returns the image family in lower case.
func readFamily(s *ec2NodeClassSpec, fail func([]string, string, ...any)) string {
	family, path, stated := strings.ToLower(s.AMIFamily), []string{"amiFamily"}, s.AMIFamily
	for i, t := range s.AMISelectorTerms {
		if family == "" && t.Alias != "" {
			family, _, _ = strings.Cut(strings.ToLower(t.Alias), "@")
			path, stated = []string{"amiSelectorTerms", Index(i), "alias"}, t.Alias
		}
	}
	family = cmp.Or(family, "custom")
	switch why, known := families[family]; {
	case !known:
		fail(path, "%q is not of a known family of images; known are %s", stated,
			strings.Join(slices.Sorted(maps.Keys(families)), ", "))
	case why != "":
		fail(path, "%q: %s", stated, why)
	}
	return family
}

// readKubelet reads the pod limits and the reservations of the kubelet.
func (c *nodeClass) readKubelet(k *kubeletSpec, fail func([]string, string, ...any)) {
	for _, x := range []struct {
		name string
		from *int32
		to   *int64
	}{{"maxPods", k.MaxPods, &c.nodes.PodsMax}, {"podsPerCore", k.PodsPerCore, &c.nodes.PodsPerCore}} {
		if x.from == nil {
			continue
		}
		if why := outside(*x.from, 1, podsMax); why != "" {
			fail([]string{"kubelet", x.name}, "%s", why)
		}
		*x.to = int64(*x.from)
	}
	amounts := func(field string, of map[string]string, take func(key string, q *resource.Quantity)) {
		for _, key := range slices.Sorted(maps.Keys(of)) {
			q, err := resource.ParseQuantity(of[key])
			switch {
			case err != nil || q.Sign() < 0:
				fail([]string{"kubelet", field, key}, "want a quantity such as 100m or 1Gi, got %q", of[key])
			case !slices.Contains([]string{"cpu", "memory", "ephemeral-storage", "pid"}, key):
				fail([]string{"kubelet", field, key}, "%q is not cpu, memory, ephemeral-storage or pid", key)
			default:
				take(key, &q)
			}
		}
	}
	amounts("systemReserved", k.SystemReserved, func(key string, q *resource.Quantity) {
		switch key {
		case "cpu":
			c.nodes.System.CPU = q.MilliValue()
		case "memory":
			c.nodes.System.Memory = q.Value()
		case "ephemeral-storage":
			c.nodes.System.Storage = q.Value()
		}
	})
	amounts("kubeReserved", k.KubeReserved, func(key string, q *resource.Quantity) {
		milli, whole := q.MilliValue(), q.Value()
		switch key {
		case "cpu":
			c.nodes.KubeCPU = &milli
		case "memory":
			c.nodes.KubeMemory = &whole
		case "ephemeral-storage":
			c.nodes.KubeStorage = &whole
		}
	})
	c.readEviction(k.EvictionHard, fail)
}

// readEviction reads the thresholds of hard eviction. Karpenter ignores signals other than those of
// memory and disk.
func (c *nodeClass) readEviction(hard map[string]string, fail func([]string, string, ...any)) {
	for _, x := range []struct {
		signal string
		to     *catalog.Threshold
	}{{"memory.available", &c.nodes.EvictMemory}, {"nodefs.available", &c.nodes.EvictStorage}} {
		text, stated := hard[x.signal]
		if !stated {
			continue
		}
		x.to.Set = true
		if digits, percent := strings.CutSuffix(text, "%"); percent {
			p, err := strconv.ParseFloat(digits, 64)
			if x.to.Percent = p; err == nil && p >= 0 && p <= 100 {
				continue
			}
		} else if q, err := resource.ParseQuantity(text); err == nil && q.Sign() >= 0 {
			x.to.Amount = q.Value()
			continue
		}
		fail([]string{"kubelet", "evictionHard", x.signal}, "want a quantity such as 100Mi, or a percentage, got %q", text)
	}
}

// readDisk determines the disk that pods write to: the root volume, or else the volume that the
// image family uses for pods (ephemeralStorage in types.go).
func (c *nodeClass) readDisk(s *ec2NodeClassSpec, family string, fail func([]string, string, ...any)) {
	switch s.InstanceStorePolicy {
	case "":
	case "RAID0":
		c.disk = true
	default:
		fail([]string{"instanceStorePolicy"}, "%q is not RAID0", s.InstanceStorePolicy)
	}
	device, at := "/dev/xvda", -1
	if c.nodes.Bottlerocket {
		device = "/dev/xvdb"
	}
	for i := range s.BlockDeviceMappings {
		b := &s.BlockDeviceMappings[i]
		if q := b.EBS.VolumeSize; q != nil && q.Sign() <= 0 {
			fail([]string{"blockDeviceMappings", Index(i), "ebs", "volumeSize"}, "%s is not above 0", q)
		}
		switch {
		case at >= 0 && s.BlockDeviceMappings[at].RootVolume:
		case b.RootVolume, family == "custom", b.DeviceName == device:
			at = i // for a custom image, the last one
		}
	}
	if at >= 0 {
		if q := s.BlockDeviceMappings[at].EBS.VolumeSize; q != nil {
			c.nodes.RootVolume = q.Value()
		}
	}
}

// findDisks sets the node class of a CapacityPool. Its volumes are billed; its other settings apply
// only to NodePools.
func (p *pool) findDisks(sc *Scenario) {
	if p.capacity == nil || p.capacity.Spec.Backend.Karpenter == nil {
		return
	}
	name := p.capacity.Spec.Backend.Karpenter.NodeClassName
	if at := slices.IndexFunc(sc.classes, func(c *nodeClass) bool { return c.name == name }); at >= 0 {
		p.disks = sc.classes[at]
		p.disks.used = true
	}
}

// resolveClasses sets the node class of every pool.
func (sc *Scenario) resolveClasses() []error {
	var errs []error
	for i := range sc.pools {
		own := sc.pools[i].own
		switch {
		case own == nil:
			sc.pools[i].findDisks(sc)
			continue
		case own.ref.Kind != "EC2NodeClass" && !own.auto():
			errs = append(errs, own.nameZones(sc.pools[i].doc)...)
			continue
		}
		at := slices.IndexFunc(sc.classes, func(c *nodeClass) bool {
			return c.kind == own.ref.Kind &&
				c.name == own.ref.Name
		})
		if at < 0 && own.auto() {
			at, sc.classes = len(sc.classes), append(sc.classes, sc.defaultAutoClass(sc.pools[i].doc, own.ref.Name))
		}
		if at < 0 {
			sc.warn("EC2NodeClass %s is not given: its nodes have the settings that EKS has for AL2023; add what `kubectl get ec2nodeclass %[1]s -o yaml` prints", own.ref.Name)
			at = len(sc.classes)
			sc.classes = append(sc.classes, &nodeClass{doc: sc.pools[i].doc, name: own.ref.Name, zones: map[string]string{}})
		}
		own.class = sc.classes[at]
		own.class.used = true
		errs = append(errs, own.nameZones(sc.pools[i].doc)...)
	}
	for i := range sc.pools {
		errs = append(errs, sc.pools[i].settleReserved(sc)...)
	}
	wanted := slices.ContainsFunc(sc.templates, func(t policy.Template) bool { return t.Requests.Storage > 0 })
	for _, c := range sc.classes {
		for _, text := range c.unbilled {
			if c.used {
				sc.warn("EC2NodeClass %s: unknown %s", c.name, text)
			}
		}
		switch {
		case !c.used:
			sc.warn("%s %s has no effect: no NodePool and no CapacityPool is of it", c.kind, c.name)
		case c.disk && wanted:
			errs = append(errs, c.doc.problem([]string{"spec", "instanceStorePolicy"},
				"RAID0: pods request ephemeral-storage, and the sizes of the disks of instances are not known"))
		case c.disk:
			sc.warn("EC2NodeClass %s: instanceStorePolicy is not simulated: no pod requests ephemeral-storage", c.name)
		}
	}
	return errs
}

// A kwokNodeClass is the node class of simulated nodes. It has no settings.
type kwokNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct{} `json:"spec"`
}
