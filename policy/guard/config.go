package guard

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Config contains the limits of the guardrails. Start from [DefaultConfig].
type Config struct {
	// FractionMax is the maximum fraction of all nodes that may be leaving at once, in (0, 1]; one
	// node always may. Raising it moves faster and loses more at once if replacements fail.
	FractionMax float64

	// ConfidenceMin is the minimum confidence of a forecast for which a Spot market is bought
	// voluntarily, in [0, 1]. Raising it keeps pools on-demand where little is known.
	ConfidenceMin float64

	// UtilizationTight is the utilization of a pool above which a node may be removed only with a
	// replacement bought in the same plan, or if all its pods fit on other nodes. UtilizationFull
	// is the utilization above which the replacement must be initialized before the drain starts,
	// and which a drain without a replacement must not exceed. Raising them lets displaced pods
	// rely on the free capacity of other nodes.
	UtilizationTight, UtilizationFull float64

	// Cooldown is the minimum time between two rounds of drains in a pool that states none of its
	// own. Raising it moves nodes less often.
	Cooldown time.Duration

	// BackoffMin is how long a node is left alone after a drain of it started and did not complete.
	// The time doubles with each try, up to BackoffMax. Raising them tries undrainable nodes less
	// often.
	BackoffMin, BackoffMax time.Duration

	// PatchesMax is the maximum number of pods that get a deletion cost in one step; the pods of
	// one node always do. Raising it orders a large cluster sooner, with more writes to the API
	// server at a time.
	PatchesMax int
}

// DefaultConfig returns the default limits: a tenth of the nodes, a confidence of one half and two
// limits of utilization, as shipped with SpotVortex.
func DefaultConfig() Config {
	return Config{
		FractionMax:      0.10,
		ConfidenceMin:    policy.ConfidenceMin,
		UtilizationTight: policy.UtilizationTight,
		UtilizationFull:  0.95,
		Cooldown:         10 * time.Minute,
		BackoffMin:       30 * time.Minute,
		BackoffMax:       6 * time.Hour,
		PatchesMax:       500,
	}
}

// Validate returns an error that names the first field out of range, with its value.
func (c Config) Validate() error {
	switch {
	case !(c.FractionMax > 0) || c.FractionMax > 1:
		return fmt.Errorf("guardrails: fraction max %v is not in (0, 1]", c.FractionMax)
	case !isUnit(c.ConfidenceMin):
		return fmt.Errorf("guardrails: confidence min %v is not in [0, 1]", c.ConfidenceMin)
	case !isUnit(c.UtilizationTight):
		return fmt.Errorf("guardrails: utilization tight %v is not in [0, 1]", c.UtilizationTight)
	case !isUnit(c.UtilizationFull) || c.UtilizationFull < c.UtilizationTight:
		return fmt.Errorf("guardrails: utilization full %v is not in [%v, 1]", c.UtilizationFull, c.UtilizationTight)
	case c.Cooldown < 0:
		return fmt.Errorf("guardrails: cooldown %v is negative", c.Cooldown)
	case c.BackoffMin < 0:
		return fmt.Errorf("guardrails: backoff min %v is negative", c.BackoffMin)
	case c.PatchesMax < 1:
		return fmt.Errorf("guardrails: patches max %d is less than 1", c.PatchesMax)
	case c.BackoffMax < c.BackoffMin:
		return fmt.Errorf("guardrails: backoff max %v is less than the min, %v", c.BackoffMax, c.BackoffMin)
	}
	return nil
}

// isUnit reports whether x is in [0, 1]; NaN is not.
func isUnit(x float64) bool { return x >= 0 && x <= 1 }
