package live

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// KillSwitchAnnotation is the annotation on the ConfigMap of the kill switch: "true" stops all
// changes, "false" resumes them.
const KillSwitchAnnotation = permit.KillSwitchAnnotation

// A Config configures the controller. Start from [DefaultConfig].
type Config struct {
	// Mode limits the mode of every pool. With ModeShadow nothing is changed, whatever the
	// manifests specify. With ModeActive each pool has the mode of its manifest.
	Mode policy.Mode

	// PlanExpiry is how long a plan may be approved and carried out. A higher value gives users
	// more time, and allows older plans to be carried out.
	PlanExpiry time.Duration

	// Namespace is the namespace of the lease, the memory and the kill switch.
	Namespace string

	// Identity identifies this replica in the lease. It must be unique.
	Identity string

	// LeaderElect allows several replicas to run, of which one acts. Without it nothing prevents a
	// second replica from acting as well.
	LeaderElect bool

	// LeaseDuration is the time since the last renewal after which another replica may take over
	// the lease. RenewDeadline is how long a leader tries to renew it before it stops, and
	// RetryPeriod the time between two attempts. Higher values lengthen the time without a leader
	// after a crash, and send fewer requests to the API server.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// Collect is how long events are collected before one step handles all of them. Urgent events,
	// such as a notice, cause a step at once. A higher value results in fewer steps while pods come
	// and go.
	Collect time.Duration

	// Settings can change while the controller runs.
	Settings

	// CallMax is the maximum duration of one call of a backend or of the enforcement of GPU
	// budgets. A higher value lets a call that hangs delay the rest of its pool for longer.
	CallMax time.Duration

	// TendEvery is the maximum time between two checks of the objects of the backends, even if no
	// step is due. A higher value keeps launches without a machine, and outdated limits, for
	// longer.
	TendEvery time.Duration

	// StepHung is the duration after which a step counts as hung, and the process gives up the
	// lease. A higher value leaves the cluster without decisions for longer.
	StepHung time.Duration

	// PricesWait is the maximum time that the first step waits for prices. Without prices, it
	// decides based on the catalog alone.
	PricesWait time.Duration

	// Retry is the delay of the next step after a failed step. It doubles up to RetryMax while
	// steps fail.
	Retry, RetryMax time.Duration

	// Shutdown is the maximum time for finishing or undoing drains when the process is terminated.
	// A value above the pod's termination grace period has no effect.
	Shutdown time.Duration

	// KillSwitch is the name of the ConfigMap in Namespace that stops all changes; empty disables
	// the kill switch. SwitchEvery is the interval at which it is read between steps.
	KillSwitch  string
	SwitchEvery time.Duration

	// StatusEvery is the minimum time between two writes of a pool's status that change only
	// figures. A changed condition is written at once.
	StatusEvery time.Duration

	// ExperienceEvery is the interval at which the experience of markets is saved. A crash loses
	// the observations since the last save.
	ExperienceEvery time.Duration

	// Settle is how long a node that the ramp admitted may remain untouched before its move counts
	// as failed and another node may be admitted in its place.
	Settle time.Duration
}

// Settings are the fields of a [Config] that can change while the controller runs.
type Settings struct {
	// StepMax is the maximum time between two steps, whatever a plan requests.
	StepMax time.Duration

	// Discount1y and Discount3y are the discounts of commitments of one and three years on the
	// on-demand price, in [0, 1]. They are used only for comparison.
	Discount1y, Discount3y float64
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{
		Mode: policy.ModeShadow, Namespace: "spotter", LeaderElect: true,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Collect: 10 * time.Second, CallMax: 30 * time.Second, TendEvery: 20 * time.Second, StepHung: 2 * stepTimeout, PricesWait: 30 * time.Second,
		Retry: 5 * time.Second, RetryMax: time.Minute,
		Shutdown:   20 * time.Second,
		PlanExpiry: 8 * time.Hour,
		KillSwitch: "spotter-kill-switch", SwitchEvery: time.Second,
		StatusEvery: time.Minute, ExperienceEvery: 5 * time.Minute, Settle: 30 * time.Minute,
		Settings: Settings{StepMax: 10 * time.Minute, Discount1y: 0.29, Discount3y: 0.45},
	}
}

// Validate returns an error that names the first invalid field and its value.
func (c *Config) Validate() error {
	switch {
	case c.Mode != policy.ModeShadow && c.Mode != policy.ModeActive:
		return fmt.Errorf("Mode %d is neither shadow nor active", c.Mode)
	case c.Namespace == "":
		return fmt.Errorf("Namespace is empty")
	case c.LeaderElect && c.Identity == "":
		return fmt.Errorf("Identity is empty: replicas could not be distinguished")
	case c.RetryPeriod <= 0 || c.RenewDeadline <= c.RetryPeriod+c.RetryPeriod/5 || c.LeaseDuration <= c.RenewDeadline:
		return fmt.Errorf("LeaseDuration %v, RenewDeadline %v and RetryPeriod %v must fall in this order", c.LeaseDuration,
			c.RenewDeadline, c.RetryPeriod)
	case !(c.Discount1y >= 0 && c.Discount1y <= 1):
		return fmt.Errorf("Discount1y %v is not in [0, 1]", c.Discount1y)
	case !(c.Discount3y >= 0 && c.Discount3y <= 1):
		return fmt.Errorf("Discount3y %v is not in [0, 1]", c.Discount3y)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"Collect", c.Collect}, {"StepMax", c.StepMax}, {"CallMax", c.CallMax}, {"TendEvery", c.TendEvery}, {"StepHung",
			c.StepHung},
		{"PricesWait", c.PricesWait}, {"Retry", c.Retry}, {"RetryMax", c.RetryMax}, {"Shutdown", c.Shutdown},
		{"SwitchEvery", c.SwitchEvery}, {"StatusEvery", c.StatusEvery}, {"ExperienceEvery", c.ExperienceEvery}, {"Settle",
			c.Settle}, {"PlanExpiry", c.PlanExpiry},
	} {
		if d.value <= 0 {
			return fmt.Errorf("%s %v is not positive", d.name, d.value)
		}
	}
	return nil
}
