package models

import (
	"fmt"
	"time"
)

// A Config holds the parameters of the [ClosedForm]. Start from
// [DefaultConfig].
type Config struct {
	// PriorReclaims is how many reclaims the prior of a market counts for: the a
	// of (a + reclaims)/(b + node-hours), whose b follows from the market's
	// prior rate. Raising it makes a forecast slower to follow what we meet in
	// the market itself.
	PriorReclaims float64

	// PooledReclaims is the same for what the markets of one zone, and those
	// of one instance type, have in common. Raising it makes markets learn
	// less from each other.
	PooledReclaims float64

	// FactorMax bounds how many times above or below its prior experience
	// elsewhere in its zone and type may put a market. Raising it trusts
	// neighbours more.
	FactorMax float64

	// PriorLaunches is how many launches the prior of a refusal counts for.
	// Raising it makes the capacity score slower to follow our own refusals.
	PriorLaunches float64

	// RefusalMemory is how long a refusal is felt: the time in which the
	// probability that its cause lasts falls to 1/e. Raising it keeps away
	// longer from a market that refused us.
	RefusalMemory time.Duration

	// ShortageDepth is the part of a market's running nodes that a shortage
	// takes, in [0, 1]. A refusal shows a shortage, or only that we hold all
	// that there is; raising it takes refusals more as a danger for what runs.
	ShortageDepth float64

	// Horizon is how far the scores look ahead.
	Horizon time.Duration

	// ConfidencePublished is the confidence without experience where a band is published, and
	// ConfidenceUnknown where the band is unknown; both in [0, 1].
	ConfidencePublished, ConfidenceUnknown float64

	// ConfidenceHours is how many node-hours in a market bring its confidence
	// half of the way to 1.
	ConfidenceHours float64
}

// DefaultConfig returns the parameters used where none are given. They are
// judgements and not fits: one reclaim doubles a market's rate, four double
// that of a zone or a type, and shortages last hours.
func DefaultConfig() Config {
	return Config{
		PriorReclaims:       1,
		PooledReclaims:      4,
		FactorMax:           8,
		PriorLaunches:       10,
		RefusalMemory:       2 * time.Hour,
		ShortageDepth:       0.5,
		Horizon:             time.Hour,
		ConfidencePublished: 0.6,
		ConfidenceUnknown:   0.5,
		ConfidenceHours:     500,
	}
}

func (c Config) validate() error {
	for _, f := range [...]struct {
		name  string
		value float64
	}{
		{"prior reclaims", c.PriorReclaims}, {"pooled reclaims", c.PooledReclaims},
		{"prior launches", c.PriorLaunches}, {"confidence hours", c.ConfidenceHours},
		{"refusal memory", c.RefusalMemory.Hours()}, {"horizon", c.Horizon.Hours()},
	} {
		if !(f.value > 0) {
			return fmt.Errorf("closed form: %s %v is not positive", f.name, f.value)
		}
	}
	switch {
	case !(c.FactorMax >= 1):
		return fmt.Errorf("closed form: factor max %v is less than 1", c.FactorMax)
	case !(c.ShortageDepth >= 0 && c.ShortageDepth <= 1):
		return fmt.Errorf("closed form: shortage depth %v is not in [0, 1]", c.ShortageDepth)
	case !(c.ConfidencePublished >= 0 && c.ConfidencePublished <= 1):
		return fmt.Errorf("closed form: confidence published %v is not in [0, 1]", c.ConfidencePublished)
	case !(c.ConfidenceUnknown >= 0 && c.ConfidenceUnknown <= 1):
		return fmt.Errorf("closed form: confidence unknown %v is not in [0, 1]", c.ConfidenceUnknown)
	}
	return nil
}
