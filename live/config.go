package live

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// KillSwitchAnnotation on the ConfigMap of the kill switch is "true" to stop and "false" to resume.
const KillSwitchAnnotation = permit.KillSwitchAnnotation

// A Config says how the controller runs. Start from [DefaultConfig].
type Config struct {
	// Mode limits the mode of every pool: with ModeShadow nothing is changed whatever the manifests
	// say, and with ModeActive the mode of each pool is that of its manifest.
	Mode policy.Mode

	// PlanExpiry is how long a plan that waits for approval may be approved and carried
	// out. Raising it gives persons more time, and lets older plans be carried out.
	PlanExpiry time.Duration

	// Namespace holds the lease, the memory and the kill switch.
	Namespace string

	// Identity names this replica in the lease; no two replicas share one.
	Identity string

	// LeaderElect lets several replicas run, of which one acts. Without it nothing
	// keeps a second one from acting as well.
	LeaderElect bool

	// LeaseDuration is how long after its last sign a leader that died is waited
	// for, RenewDeadline how long a leader tries to renew before it stops, and
	// RetryPeriod the time between two tries. Raising them lengthens the time
	// without a leader after a crash, and asks less of the API server.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// Collect is how long what happened is gathered before one step answers all of
	// it; what cannot wait, such as a notice, has its step at once. Raising it
	// makes fewer steps while pods come and go.
	Collect time.Duration

	// Settings can change while the controller runs.
	Settings

	// CallMax bounds one call of a backend, or of what enforces budgets. Raising it lets
	// what hangs hold up the rest of its pool for longer.
	CallMax time.Duration

	// TendEvery is the longest time between two looks at what the backends hold, also
	// where no step is due. Raising it leaves launches that got no machine, and limits
	// that lag behind, for longer.
	TendEvery time.Duration

	// StepHung is how long a step may last before it counts as hung, and the process gives
	// up the lease. Raising it leaves the cluster without decisions for longer.
	StepHung time.Duration

	// PricesWait bounds how long the first step waits for prices: without any it would
	// decide by what the catalog says alone.
	PricesWait time.Duration

	// Retry is how long the next step waits after a failed one. It doubles up to RetryMax while
	// steps fail.
	Retry, RetryMax time.Duration

	// Shutdown bounds what is done to finish or undo drains when the process is
	// asked to end. Raising it above the pod's termination grace does nothing.
	Shutdown time.Duration

	// KillSwitch names the ConfigMap in Namespace that stops everything; empty
	// goes without. SwitchEvery is how often it is read between steps.
	KillSwitch  string
	SwitchEvery time.Duration

	// StatusEvery is the least time between two writes of a pool's status that
	// change figures only; a condition that changes is written at once.
	StatusEvery time.Duration

	// ExperienceEvery is how often what was met in the markets is saved. A crash
	// loses what was met since.
	ExperienceEvery time.Duration

	// Settle is how long a node that the ramp admitted may stay untouched before its move counts as
	// failed and another may take its place.
	Settle time.Duration
}

// Settings are what of a [Config] can change while the controller runs.
type Settings struct {
	// StepMax is the longest time between two steps, whatever a plan requests.
	StepMax time.Duration

	// Discount1y and Discount3y are what commitments of one and three years save
	// off the price on demand, in [0, 1]. They are for comparison only.
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

// Validate names the first field that is out of its range, and its value.
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
