package permit

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// KillSwitchAnnotation on the ConfigMap of the kill switch says "true" to stop and
// "false" to go on.
const KillSwitchAnnotation = "spotter.dev/kill-switch"

// A Config says what an [Authority] reads.
type Config struct {
	// Mode is the furthest that any pool goes.
	Mode policy.Mode

	// Namespace holds our own ConfigMaps, KillSwitch among them; an empty KillSwitch
	// goes without.
	Namespace, KillSwitch string

	// Fence returns an error while this replica does not hold the lease; nil without
	// leader election.
	Fence func(context.Context) error

	// Conflicts names the pools that must not be changed, since another selects the
	// same nodes; nil names none.
	Conflicts func() map[string]string

	// Fresh is how old what was read may be. Raising it reads less and obeys later.
	Fresh time.Duration

	// ReadMax bounds one reading.
	ReadMax time.Duration

	Clock clock.PassiveClock
}

// DefaultConfig returns bounds with which a change is obeyed within two seconds.
func DefaultConfig() Config {
	return Config{Mode: policy.ModeShadow, Fresh: time.Second, ReadMax: 3 * time.Second, Clock: clock.RealClock{}}
}

// An Authority answers whether something may be changed. It may be used by several
// goroutines.
type Authority struct {
	cfg    Config
	reader client.Reader // reads from the API server

	mu   sync.Mutex
	read time.Time // when what follows was read; zero forces a reading

	pools   map[string]*v1alpha1.CapacityPool
	stopped bool   // as the switch said last
	missing string // why the switch could not be read; empty when it was
}

// New returns an authority that has read nothing yet.
func New(cfg Config, reader client.Reader) *Authority {
	return &Authority{cfg: cfg, reader: reader}
}

// Recall sets what the kill switch said last, as the leader before this one saved it.
// It holds while the switch is not there or cannot be read.
func (a *Authority) Recall(stopped bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = stopped
}

// Stopped returns whether the kill switch is on, and why it could not be read; empty
// when it was.
func (a *Authority) Stopped(ctx context.Context) (on bool, missing string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err = a.refresh(ctx)
	return a.stopped, a.missing, err
}

// Pool returns how far a pool may go now.
func (a *Authority) Pool(ctx context.Context, name string) (Decision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.refresh(ctx); err != nil {
		return "", err
	}
	return a.decision(name), nil
}

// Spec returns a pool as it is now, nil where there is none. It is shared and never
// written.
func (a *Authority) Spec(ctx context.Context, name string) (*v1alpha1.CapacityPool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.refresh(ctx); err != nil {
		return nil, err
	}
	return a.pools[name], nil
}

// Cluster returns how far what spans pools may go now.
func (a *Authority) Cluster(ctx context.Context) (Decision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.refresh(ctx); err != nil {
		return "", err
	}
	return a.cluster(), nil
}

// Check returns nil while what ctx carries a permit for may be done, a [Denied] while
// it may not, an [Unpermitted] where it carries none, and any other error where that
// could not be read.
func (a *Authority) Check(ctx context.Context) error {
	p, ok := ctx.Value(permitKey{}).(permit)
	if !ok {
		return &Unpermitted{What: "a call to a cloud"}
	}
	return a.check(ctx, p)
}

func (a *Authority) check(ctx context.Context, p permit) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.refresh(ctx); err != nil {
		return err
	}
	v := Active
	switch p.purpose {
	case act:
		v = a.decision(p.pool)
	case enforce:
		v = a.cluster()
	case undo:
		if a.cfg.Mode != policy.ModeActive {
			v = Shadow
		}
	}
	if v != Active {
		return &Denied{Pool: p.pool, Decision: v}
	}
	return nil
}

// decision judges one pool. The caller holds mu.
func (a *Authority) decision(name string) Decision {
	p := a.pools[name]
	switch {
	case p == nil:
		return Gone
	case p.Spec.Mode == v1alpha1.ModeOff:
		return Off
	case a.cfg.Mode != policy.ModeActive || p.Spec.Mode != v1alpha1.ModeActive:
		return Shadow
	case a.cfg.Conflicts != nil && a.cfg.Conflicts()[name] != "":
		return Conflict
	}
	return a.cluster()
}

func (a *Authority) cluster() Decision {
	switch {
	case a.cfg.Mode != policy.ModeActive:
		return Shadow
	case a.stopped:
		return Stopped
	}
	return Active
}

// refresh reads what is too old. The caller holds mu, so that those who ask meanwhile
// wait for the one reading.
func (a *Authority) refresh(ctx context.Context) error {
	now := a.cfg.Clock.Now()
	if !a.read.IsZero() && now.Sub(a.read) < a.cfg.Fresh && !now.Before(a.read) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.ReadMax)
	defer cancel()
	if a.cfg.Fence != nil {
		if err := a.cfg.Fence(ctx); err != nil {
			return err
		}
	}
	var list v1alpha1.CapacityPoolList
	if err := a.reader.List(ctx, &list); err != nil && !apierrors.IsNotFound(err) { // without our definitions there are no pools
		return fmt.Errorf("reading the mode of the pools: %w", err)
	}
	pools := make(map[string]*v1alpha1.CapacityPool, len(list.Items))
	for i := range list.Items {
		pools[list.Items[i].Name] = &list.Items[i]
	}
	a.readSwitch(ctx)
	a.pools, a.read = pools, now
	return nil
}

// readSwitch reads the kill switch. While it is not there, or cannot be read, what it
// said last holds.
func (a *Authority) readSwitch(ctx context.Context) {
	if a.cfg.KillSwitch == "" {
		return
	}
	key := client.ObjectKey{Namespace: a.cfg.Namespace, Name: a.cfg.KillSwitch}
	var x corev1.ConfigMap
	if err := a.reader.Get(ctx, key, &x); err != nil {
		a.missing = err.Error()
		if apierrors.IsNotFound(err) {
			a.missing = fmt.Sprintf("ConfigMap %s does not exist", key)
		}
		return
	}
	a.missing = ""
	value, there := x.Annotations[KillSwitchAnnotation]
	if !there {
		a.missing = fmt.Sprintf("ConfigMap %s has no annotation %s", key, KillSwitchAnnotation)
		return
	}
	on, err := strconv.ParseBool(value)
	if err != nil { // somebody meant something, and doing nothing harms least
		on = true
		a.missing = fmt.Sprintf("annotation %s of ConfigMap %s is %q, neither true nor false: treated as true", KillSwitchAnnotation, key, value)
	}
	a.stopped = on
}
