package catalog

import (
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// baselines are the baseline utilisation per vCPU of burstable types by size, in thousandths (user
// guide of EC2, "Key concepts for burstable performance instances", 2026-08); t3, t3a and t4g share
// one table. A credit is one vCPU for one minute, so that t3.medium, with 2 × 0.20 vCPU, earns 24
// per hour.
var (
	baselines = map[string]int64{
		"nano": 50, "micro": 100, "small": 200, "medium": 200, "large": 300, "xlarge": 400, "2xlarge": 400,
	}
	baselinesT2 = map[string]int64{
		"nano": 50, "micro": 100, "small": 200, "medium": 200, "large": 300, "xlarge": 225, "2xlarge": 170,
	}
)

// launchCredits are the credits per vCPU that a t2 node in standard mode receives at launch. Other
// families receive none. AWS grants them to 100 launches a day.
const launchCredits = 30

// The prices of a vCPU-hour above the baseline (aws.amazon.com/ec2/pricing/on-demand, 2026-08,
// Linux). They are the same in all regions and on Spot.
const (
	surplus    = policy.Dollar * 5 / 100
	surplusARM = policy.Dollar * 4 / 100
)

// credits returns the credit terms of an instance type in the default mode of AWS, on demand and on
// Spot: standard for t2, unlimited for the others. They are zero for a type that is not burstable.
func credits(t *policy.InstanceType) policy.CPUCredits {
	_, size, _ := strings.Cut(t.Name, ".")
	table := baselines
	c := policy.CPUCredits{Surplus: surplus}
	switch t.Family {
	case "t2":
		table = baselinesT2
		c.Standard, c.Launch = true, launchCredits*t.VCPU
	case "t3", "t3a":
	case "t4g":
		c.Surplus = surplusARM
	default:
		return policy.CPUCredits{}
	}
	if c.Baseline = table[size] * t.VCPU; c.Baseline == 0 {
		return policy.CPUCredits{}
	}
	return c
}

// Unmodelled reports whether an instance type shares its processors on terms that the catalog does
// not contain: the B series of Azure, the shared-core types of Google and the t1 of AWS.
func Unmodelled(provider, name string) bool {
	switch provider {
	case AWS:
		return strings.HasPrefix(name, "t1.")
	case GCP:
		return strings.HasPrefix(name, "f1-") || strings.HasPrefix(name, "g1-") || name == "e2-micro" ||
			name == "e2-small" || name == "e2-medium"
	case Azure:
		size, ok := strings.CutPrefix(name, "Standard_B")
		return ok && size != "" && size[0] >= '0' && size[0] <= '9'
	}
	return false
}
