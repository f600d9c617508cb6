package gcp

import (
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// sharedCores are the cores that are charged of machine types with a shared core (Compute Engine
// documentation, "VM instance pricing", shared-core machine types). Their nodes report two.
var sharedCores = map[string]float64{"e2-micro": 0.25, "e2-small": 0.5, "e2-medium": 1}

// A machine is a machine type as it is charged.
type machine struct {
	name        string
	family      string
	cores, gib  float64
	accelerator string // empty if it has none
	count       float64
}

// machines returns the machine types of the catalog whose price is the sum of parts that are known,
// and the families or shapes of the others.
func machines() (priced []machine, others []string) {
	for _, name := range catalog.Types(catalog.GCP) {
		t, _ := catalog.Lookup(catalog.GCP, name)
		memory, _ := policy.FindLabel(t.Labels, "karpenter.k8s.gcp/instance-memory")
		mib, err := strconv.ParseInt(memory, 10, 64)
		if kind := unpriced(&t); kind != "" || err != nil {
			if len(others) == 0 || others[len(others)-1] != kind {
				others = append(others, kind)
			}
			continue
		}
		m := machine{name: name, family: t.Family, cores: float64(t.VCPU), gib: float64(mib) / 1024, accelerator: t.GPUName,
			count: float64(t.Capacity.GPU)}
		if shared, is := sharedCores[name]; is {
			m.cores = shared
		}
		priced = append(priced, m)
	}
	return priced, others
}

// unpriced returns the name of the group of a machine type whose price has parts that are not
// known: local disks, whose number the catalog does not have, the premium of M2, and what is charged
// as a whole. It returns "" for other types.
func unpriced(t *policy.InstanceType) string {
	shape, _, _ := strings.Cut(strings.TrimPrefix(t.Name, t.Family+"-"), "-")
	switch {
	case strings.HasSuffix(t.Name, "-lssd"):
		return t.Family + "-*-lssd"
	case t.Family == "a3", t.Family == "m2", t.Family == "f1", t.Family == "g1":
		return t.Family
	case t.Family == "a2" && shape == "ultragpu", t.Family == "n1" && (shape == "megamem" || shape == "ultramem"):
		return t.Family + "-" + shape
	}
	return ""
}

// price returns the price of a machine type on a purchase option, per node-hour, and whether the
// prices of all of its parts are known.
func (m *machine) price(rates map[component]rate, spot bool) (policy.Money, bool) {
	sum := 0.0
	for _, x := range []struct {
		name   string
		part   part
		amount float64
	}{{m.family, partCore, m.cores}, {m.family, partMemory, m.gib}, {m.accelerator, partAccelerator, m.count}} {
		if x.amount == 0 {
			continue
		}
		r, known := rates[component{x.name, x.part, spot}]
		if !known || r.unclear {
			return 0, false
		}
		sum += float64(x.amount * r.dollars)
	}
	p := policy.Dollars(sum)
	return p, p > 0
}
