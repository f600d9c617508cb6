package models

import (
	"fmt"
	"time"
)

// A Config contains the parameters of a [ClosedForm]. Start from [DefaultConfig].
type Config struct {
	// PriorReclaims is the number of reclaims that the prior of a market is worth: the a of (a +
	// reclaims)/(b + node-hours), whose b follows from the market's prior rate. A higher value
	// makes a forecast slower to follow experience in the market itself.
	PriorReclaims float64

	// PooledReclaims is the same for the factors of a zone and of an instance type. A higher value
	// makes markets learn less from each other.
	PooledReclaims float64

	// FactorMax is the maximum factor by which experience elsewhere in its zone and type may raise
	// or lower the forecast of a market. A higher value gives neighbours more influence.
	FactorMax float64

	// PriorLaunches is the number of launches that the prior of a refusal is worth. A higher value
	// makes the capacity score slower to follow observed refusals.
	PriorLaunches float64

	// RefusalMemory is the time in which the probability that the cause of a refusal continues
	// falls to 1/e. A higher value avoids a market for longer after a refusal.
	RefusalMemory time.Duration

	// ShortageDepth is the fraction of a market's running nodes that a shortage takes, in [0, 1]. A
	// refusal indicates a shortage, or only that this cluster already has all available nodes; a
	// higher value treats refusals as a higher risk for running nodes.
	ShortageDepth float64

	// Horizon is the time that the scores cover.
	Horizon time.Duration

	// ConfidencePublished is the confidence without experience if a band is published,
	// ConfidenceUnknown if the band is unknown; both in [0, 1].
	ConfidencePublished, ConfidenceUnknown float64

	// ConfidenceHours is the number of node-hours in a market that increase its confidence half of
	// the way to 1.
	ConfidenceHours float64
}

// DefaultConfig returns the default parameters. They are judgements, not fitted values: one reclaim
// doubles a market's rate, four double that of a zone or a type, and shortages last hours.
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
