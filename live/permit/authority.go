package permit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// KillSwitchAnnotation on the ConfigMap of the kill switch is "true" to stop and "false" to resume.
const KillSwitchAnnotation = "spotter.dev/kill-switch"

// A Config says what an [Authority] reads.
type Config struct {
	// Mode is the furthest that any pool goes.
	Mode policy.Mode

	// Approve has changes by choice wait for a person's approval in every pool.
	Approve bool

	// Namespace holds Spotter's ConfigMaps, KillSwitch among them. KillSwitch may be empty.
	Namespace, KillSwitch string

	// Lease is the name of the Lease that a release has in its namespace. With it pools must
	// be claimed, see [Authority.Claims]; empty requires no claims.
	Lease string

	// Fence returns until when no other replica can lead, zero where none ever can, and an
	// error while this replica does not hold the lease; nil without leader election.
	Fence func(context.Context) (until time.Time, err error)

	// Conflicts names the pools that must not be changed, since another selects the
	// same nodes; nil names none.
	Conflicts func() map[string]string

	// Fresh is how old what was read may be. Raising it reads less and obeys later.
	Fresh time.Duration

	// ReadMax bounds the reading of each object: of the lease, the pools and the switch.
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

	// reading joins the callers that wait for the same reading.
	reading singleflight.Group

	mu   sync.Mutex
	last *state // nil before the first reading
	on   bool   // the last known value of the switch
}

// A state is what one reading found. It is not changed.
type state struct {
	at time.Time // when the reading began

	// fence is why this replica must not write at all, and until when no other can lead;
	// zero for ever.
	fence error
	until time.Time

	// pools are by name; unlisted is why they are unknown.
	pools    map[string]*v1alpha1.CapacityPool
	unlisted error

	// rival is the namespace of another release that leads and has claimed a pool.
	rival string

	// kill has the last known value unless known, in which case it was read.
	kill  Switch
	known bool
}

// A Switch is the state of the kill switch.
type Switch struct {
	// On is the last known value.
	On bool

	// Problem says why the value is not the one of now; empty when it is.
	Problem string

	// Unreadable reports that the switch may have been turned on since: nothing is changed then. It
	// is false for a switch that does not exist.
	Unreadable bool
}

// New returns an authority that has read nothing yet.
func New(cfg Config, reader client.Reader) *Authority {
	return &Authority{cfg: cfg, reader: reader}
}

// Recall sets the last value of the kill switch, as the leader before this one saved it.
// It holds while the switch does not exist.
func (a *Authority) Recall(stopped bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on = stopped
}

// Switch returns the state of the kill switch.
func (a *Authority) Switch(ctx context.Context) (Switch, error) {
	s, err := a.state(ctx)
	if err != nil {
		return Switch{}, err
	}
	return s.kill, nil
}

// Pool returns how far a pool may go now.
func (a *Authority) Pool(ctx context.Context, name string) (Decision, error) {
	s, err := a.state(ctx)
	if err != nil {
		return "", err
	}
	return a.pool(s, name)
}

// NeedsApproval reports whether a person must approve what is changed by choice in a pool, as
// it was when Pool was last asked.
func (a *Authority) NeedsApproval(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		return true
	}
	p := a.last.pools[name]
	return p != nil && (a.cfg.Approve || p.Spec.Mode == v1alpha1.ModeApprove)
}

// Spec returns a pool as it is now, nil if it does not exist. It is shared and never written.
func (a *Authority) Spec(ctx context.Context, name string) (*v1alpha1.CapacityPool, error) {
	s, err := a.state(ctx)
	if err != nil {
		return nil, err
	}
	return s.pools[name], s.unlisted
}

// Cluster returns how far what spans pools may go now.
func (a *Authority) Cluster(ctx context.Context) (Decision, error) {
	s, err := a.state(ctx)
	if err != nil {
		return "", err
	}
	return a.cluster(s), nil
}

// Claims returns the namespace of another release that leads and has claimed a pool. Without such a
// release it is empty, and Claims returns the pools that this release has to claim before it may
// change them, by name. They are shared and never written. A claim is the namespace of the release
// in status.controller; [Authority.Forget] is called after it. All is read now: the release from
// which a pool is taken may have resumed leading a moment ago.
//
// CapacityPools are of the whole cluster, and every release decides for all of them: with a
// claim of one pool, another release changes nothing at all.
func (a *Authority) Claims(ctx context.Context) (rival string, unclaimed []*v1alpha1.CapacityPool, err error) {
	s, err := a.stateWithin(ctx, 0)
	if err != nil || a.cfg.Lease == "" || a.cfg.Mode != policy.ModeActive || s.rival != "" {
		if s != nil {
			rival = s.rival
		}
		return rival, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		if p := s.pools[name]; p.Status.Controller != a.cfg.Namespace {
			unclaimed = append(unclaimed, p)
		}
	}
	return "", unclaimed, s.unlisted
}

// Forget has everything read again.
func (a *Authority) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = nil
}

// Check returns nil while what ctx carries a permit for may be done, a [Denied] while
// it may not, an [Unpermitted] where it carries none, and any other error where that
// could not be read.
func (a *Authority) Check(ctx context.Context) error {
	p, ok := ctx.Value(permitKey{}).(permit)
	if !ok {
		return &Unpermitted{What: "a call to a cloud"}
	}
	_, err := a.check(ctx, p)
	return err
}

// check reads what p requires, and returns until when it is valid. Undoing Spotter's own changes
// requires only the lease: a stop needs it, and it must not fail with the switch or the pools.
func (a *Authority) check(ctx context.Context, p permit) (until time.Time, err error) {
	s, err := a.state(ctx)
	if err != nil {
		return time.Time{}, err
	}
	v := Active
	switch p.purpose {
	case act:
		v, err = a.pool(s, p.pool)
	case enforce:
		v = a.cluster(s)
	case undo:
		switch {
		case a.cfg.Mode != policy.ModeActive:
			v = Shadow
		case s.rival != "": // what it would take back may be the rival's
			v = Claimed
		}
	}
	if err == nil && v != Active {
		err = &Denied{Pool: p.pool, Decision: v}
	}
	return s.until, err
}

// pool judges one pool.
func (a *Authority) pool(s *state, name string) (Decision, error) {
	p := s.pools[name]
	switch {
	case s.unlisted != nil:
		return "", s.unlisted
	case p == nil:
		return Gone, nil
	case p.Spec.Mode == v1alpha1.ModeOff:
		return Off, nil
	case a.cfg.Mode != policy.ModeActive || !p.Spec.Mode.Acts():
		return Shadow, nil
	case s.rival == "" && a.cfg.Lease != "" && p.Status.Controller != a.cfg.Namespace:
		return Unclaimed, nil
	case s.rival == "" && a.cfg.Conflicts != nil && a.cfg.Conflicts()[name] != "":
		return Conflict, nil
	}
	return a.cluster(s), nil
}

func (a *Authority) cluster(s *state) Decision {
	switch {
	case a.cfg.Mode != policy.ModeActive:
		return Shadow
	case s.rival != "":
		return Claimed
	case s.kill.On:
		return Stopped
	case s.kill.Unreadable:
		return Unreadable
	}
	return Active
}

// state returns a state that was read at most Config.Fresh before the call. It fails where
// this replica must not write at all, or the caller no longer waits; the reading continues
// then for the other callers.
func (a *Authority) state(ctx context.Context) (*state, error) {
	return a.stateWithin(ctx, a.cfg.Fresh)
}

// stateWithin returns a state that was read at most so long before the call: see state.
func (a *Authority) stateWithin(ctx context.Context, fresh time.Duration) (*state, error) {
	now := a.cfg.Clock.Now()
	a.mu.Lock()
	s := a.last
	a.mu.Unlock()
	if s != nil && now.Sub(s.at) < fresh && !now.Before(s.at) {
		return s, s.fence
	}
	for range 2 { // the first may have started long before the call, and the second starts after it
		done := a.reading.DoChan("", func() (any, error) { return a.read(context.WithoutCancel(ctx)), nil })
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case r := <-done:
			s = r.Val.(*state)
		}
		if now.Sub(s.at) <= fresh {
			break
		}
	}
	return s, s.fence
}

// read reads everything again, each object with the whole of Config.ReadMax: a slow one must not
// take the time of the others. The age of all counts from the start.
func (a *Authority) read(ctx context.Context) *state {
	s := &state{at: a.cfg.Clock.Now()}
	var all sync.WaitGroup
	for _, part := range []func(context.Context, *state){a.readLease, a.readPools, a.readSwitch} {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, a.cfg.ReadMax)
			defer cancel()
			part(ctx, s)
		})
	}
	all.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.known {
		a.on = s.kill.On
	}
	s.kill.On = a.on
	a.last = s
	return s
}

func (a *Authority) readLease(ctx context.Context, s *state) {
	if a.cfg.Fence != nil {
		s.until, s.fence = a.cfg.Fence(ctx)
	}
}

func (a *Authority) readPools(ctx context.Context, s *state) {
	var list v1alpha1.CapacityPoolList
	if err := a.reader.List(ctx, &list); err != nil && !apierrors.IsNotFound(err) { // no CRD, no pools
		s.unlisted = fmt.Errorf("reading the mode of the pools: %w", err)
		return
	}
	s.pools = make(map[string]*v1alpha1.CapacityPool, len(list.Items))
	for i := range list.Items {
		s.pools[list.Items[i].Name] = &list.Items[i]
	}
	s.rival = a.findRival(ctx, s)
}

// findRival returns the namespace of the release that acts, empty if it is this one or none:
// of the releases that lead it is the one that has claimed the first pool by name. So two
// that have each claimed some of the pools, since one ended amid its claims, do not wait for
// each other.
func (a *Authority) findRival(ctx context.Context, s *state) string {
	if a.cfg.Lease == "" {
		return ""
	}
	idle := map[string]bool{"": true}
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		namespace := s.pools[name].Status.Controller
		switch {
		case namespace == a.cfg.Namespace:
			return ""
		case idle[namespace]:
		case a.leads(ctx, namespace):
			return namespace
		default:
			idle[namespace] = true
		}
	}
	return ""
}

// leads reports whether the lease of a release is held, or ended less than its duration ago: a
// release that was killed takes its own lease back once that has ended, and acts on its pools at
// once. A lease that cannot be read counts as held: two that act harm more than none.
func (a *Authority) leads(ctx context.Context, namespace string) bool {
	var l coordinationv1.Lease
	if err := a.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: a.cfg.Lease}, &l); err != nil {
		return !apierrors.IsNotFound(err)
	}
	x := &l.Spec
	if ptr.Deref(x.HolderIdentity, "") == "" || x.RenewTime == nil {
		return false
	}
	return a.cfg.Clock.Now().Before(x.RenewTime.Add(2 * time.Duration(ptr.Deref(x.LeaseDurationSeconds, 0)) * time.Second))
}

// readSwitch reads the kill switch. While it does not exist, or has lost the annotation, the last
// value is in force: deleting it does not mean resuming. A value that is neither true nor false
// turns it on: doing nothing harms least.
func (a *Authority) readSwitch(ctx context.Context, s *state) {
	if a.cfg.KillSwitch == "" {
		return
	}
	key := client.ObjectKey{Namespace: a.cfg.Namespace, Name: a.cfg.KillSwitch}
	var x corev1.ConfigMap
	err := a.reader.Get(ctx, key, &x)
	switch {
	case apierrors.IsNotFound(err):
		s.kill.Problem = fmt.Sprintf("ConfigMap %s does not exist", key)
		return
	case err != nil:
		s.kill.Problem, s.kill.Unreadable = fmt.Sprintf("ConfigMap %s cannot be read: %v", key, err), true
		return
	}
	value, has := x.Annotations[KillSwitchAnnotation]
	if !has {
		s.kill.Problem = fmt.Sprintf("ConfigMap %s has no annotation %s", key, KillSwitchAnnotation)
		return
	}
	s.known = true
	if s.kill.On, err = strconv.ParseBool(value); err != nil {
		s.kill.On = true
		s.kill.Problem = fmt.Sprintf("annotation %s of ConfigMap %s is %q, neither true nor false: treated as true",
			KillSwitchAnnotation, key, value)
	}
}
