package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A feeText is a fee in a scenario: text such as $15/month, or a number of dollars per hour.
type feeText string

// UnmarshalJSON accepts strings and numbers.
func (f *feeText) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*f = feeText(text)
		return nil
	}
	var number json.Number
	if err := json.Unmarshal(data, &number); err != nil {
		return fmt.Errorf("want a fee such as $15/month or 0.02/h, got %s", data)
	}
	*f = feeText(number)
	return nil
}

// A classVolume is a block volume that a node class adds to each node.
type classVolume struct {
	device string
	catalog.Volume
}

// defaultVolumes returns the volumes of an image family that Karpenter uses for devices which the
// node class does not state. The volumes of a custom image are unknown.
func defaultVolumes(family string) []classVolume {
	gp3 := func(device string, gib int64) classVolume {
		return classVolume{device, catalog.Volume{Type: "gp3", GiB: gib}}
	}
	switch family {
	case "al2", "al2023":
		return []classVolume{gp3("/dev/xvda", 20)}
	case "bottlerocket":
		return []classVolume{gp3("/dev/xvda", 4), gp3("/dev/xvdb", 20)}
	}
	return nil
}

// readVolumes sets the volumes of the class: the stated ones, and the default ones of the image
// family that they do not replace.
func (c *nodeClass) readVolumes(s *ec2NodeClassSpec, family string, fail func([]string, string, ...any)) {
	defaults := defaultVolumes(family)
	for i := range s.BlockDeviceMappings {
		b := &s.BlockDeviceMappings[i]
		at := slices.IndexFunc(defaults, func(v classVolume) bool { return v.device == b.DeviceName })
		v := classVolume{b.DeviceName, catalog.Volume{Type: "gp2"}} // the default of EC2
		if at >= 0 {
			v = defaults[at]
			defaults = slices.Delete(defaults, at, at+1)
		}
		path := []string{"blockDeviceMappings", Index(i), "ebs"}
		if c.readVolume(&v.Volume, &b.EBS, path, fail); v.GiB == 0 {
			c.unbilled = append(c.unbilled,
				fmt.Sprintf("the size of volume %s, so that it is in no bill: state ebs.volumeSize", b.DeviceName))
			continue
		}
		c.volumes = append(c.volumes, v.Volume)
	}
	for _, v := range defaults {
		c.volumes = append(c.volumes, v.Volume)
	}
	if len(c.volumes) == 0 && len(s.BlockDeviceMappings) == 0 {
		c.unbilled = append(c.unbilled,
			"which volumes its images have, so that they are in no bill: state blockDeviceMappings")
	}
}

// readVolume reads the settings of one volume. AWS bills whole GiB.
func (c *nodeClass) readVolume(v *catalog.Volume, e *ebsSpec, path []string, fail func([]string, string, ...any)) {
	if e.VolumeType != "" {
		if v.Type = e.VolumeType; !slices.Contains(catalog.VolumeTypes(), v.Type) {
			fail(append(path, "volumeType"), "%q is not one of %s", v.Type, strings.Join(catalog.VolumeTypes(), ", "))
		}
	}
	if q := e.VolumeSize; q != nil {
		v.GiB = roundedGiB(q)
	}
	for _, x := range []struct {
		field string
		from  *int64
		to    *int64
	}{{"iops", e.IOPS, &v.IOPS}, {"throughput", e.Throughput, &v.MiBps}} {
		if x.from == nil {
			continue
		}
		if *x.to = *x.from; *x.from <= 0 || *x.from > 1_000_000 {
			fail(append(path, x.field), "%d is not from 1 to 1000000", *x.from)
		}
	}
}

// roundedGiB returns the size in GiB, rounded up.
func roundedGiB(q *resource.Quantity) int64 { return (q.Value() + 1<<30 - 1) >> 30 }

// charge sets the fees of pools: the stated fee per node, and the volumes of their node classes at
// the prices of the region, or at the highest of several regions.
func (w *BoundScenario) charge(sc *Scenario) {
	modelled := map[string]bool{}
	for i := range w.Pools {
		p, class := &w.Pools[i], sc.pools[i].class()
		if p.Fees.Fee == 0 {
			p.Fees.Fee = w.NodeFee
		}
		if class == nil {
			continue
		}
		var regions []string
		for _, m := range p.Markets {
			if x := &w.Markets[m]; x.Provider == "aws" && !slices.Contains(regions, x.Region) {
				regions = append(regions, x.Region)
			}
		}
		slices.Sort(regions)
		for _, region := range regions {
			monthly, known := class.monthly(region)
			p.Fees.Volumes = max(p.Fees.Volumes, policy.Dollars(monthly/policy.HoursPerMonth))
			if !known && monthly > 0 && !modelled[region] {
				modelled[region] = true
				w.Warnings = append(w.Warnings,
					"volumes of nodes are modelled at prices of us-east-1: those of "+region+" are not in the catalog")
			}
		}
	}
}

// monthly returns the price of a node's volumes in a region, in dollars per month, and whether all
// prices are known for that region.
func (c *nodeClass) monthly(region string) (dollars float64, known bool) {
	known = true
	for _, v := range c.volumes {
		price, ok := v.PriceOf(region)
		dollars, known = dollars+price, known && ok
	}
	return dollars, known
}

// class returns the node class of the pool's nodes, or nil.
func (p *pool) class() *nodeClass {
	if p.own != nil {
		return p.own.class
	}
	return p.disks
}
