package catalog

import (
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// baselines are the parts of all their vCPUs that burstable types may use all the time, in
// thousandths, by size (user guide of EC2, "Key concepts for burstable performance instances",
// 2026-08): t3, t3a and t4g have one table. A credit is a vCPU for a minute, so that
// t3.medium, with 2 × 0.20 vCPU, earns 24 an hour.
var (
	baselines = map[string]int64{
		"nano": 50, "micro": 100, "small": 200, "medium": 200, "large": 300, "xlarge": 400, "2xlarge": 400,
	}
	baselinesT2 = map[string]int64{
		"nano": 50, "micro": 100, "small": 200, "medium": 200, "large": 300, "xlarge": 225, "2xlarge": 170,
	}
)

// launchCredits are the credits that a node of t2 gets for each vCPU when it is launched, where
// it is not unlimited; no other family gets any. AWS gives them to 100 launches a day.
const launchCredits = 30

// The prices of an hour of a vCPU beyond the baseline (aws.amazon.com/ec2/pricing/on-demand,
// 2026-08, Linux). They are the same in all regions, and on Spot.
const (
	surplus    = policy.Dollar * 5 / 100
	surplusARM = policy.Dollar * 4 / 100
)

// credits returns the terms of a type in the mode that AWS has as its default: standard for
// t2, unlimited for the others, and on Spot too.
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

// Unmodelled reports whether a type shares its processors on terms that the catalog does not
// have: the B series of Azure, the shared-core types of Google and the t1 of AWS.
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
