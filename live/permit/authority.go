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

// KillSwitchAnnotation is an annotation of the kill switch ConfigMap: "true" stops all changes,
// "false" resumes them.
const KillSwitchAnnotation = "spotter.dev/kill-switch"

// A Config configures an [Authority].
type Config struct {
	// Mode is the mode of the controller, which limits the modes of all pools.
	Mode policy.Mode

	// Approve makes voluntary changes of all pools wait for approval.
	Approve bool

	// Namespace is the namespace of Spotter's ConfigMaps. KillSwitch is the name of one of them,
	// and may be empty.
	Namespace, KillSwitch string

	// Lease is the name of the Lease that each release has in its namespace. If it is set, pools
	// must be claimed, see [Authority.Claims]; if it is empty, no claims are required.
	Lease string

	// Fence returns the time until which no other replica can lead, zero if none ever can, or an
	// error while this replica does not hold the Lease. It is nil without leader election.
	Fence func(context.Context) (until time.Time, err error)

	// Conflicts returns the pools that must not be changed because another pool selects the same
	// nodes, with the reasons. It may be nil.
	Conflicts func() map[string]string

	// Fresh is the maximum age of the state that a decision is based on. If it is raised, the API
	// server is read less often, and changes of mode take effect later.
	Fresh time.Duration

	// ReadMax is the maximum duration of each read: of the Lease, the pools and the kill switch.
	ReadMax time.Duration

	Clock clock.PassiveClock
}

// DefaultConfig returns limits with which a change of mode takes effect within two seconds.
func DefaultConfig() Config {
	return Config{Mode: policy.ModeShadow, Fresh: time.Second, ReadMax: 3 * time.Second, Clock: clock.RealClock{}}
}

// An Authority decides whether a change is permitted. It is safe for concurrent use.
type Authority struct {
	cfg    Config
	reader client.Reader // reads from the API server

	// reading shares one read among the callers that wait for it.
	reading singleflight.Group

	mu   sync.Mutex
	last *state // nil before the first read
	on   bool   // the last known value of the switch
}

// A state is the result of one read. It is not modified.
type state struct {
	at time.Time // when the read started

	// fence is the reason why this replica must not write at all, nil if it may. until is the time
	// until which no other replica can lead; zero means no limit.
	fence error
	until time.Time

	// pools contains the pools by name. unlisted is the error if they could not be read.
	pools    map[string]*v1alpha1.CapacityPool
	unlisted error

	// rival is the namespace of another release that leads and has claimed a pool, or empty.
	rival string

	// kill is the state of the kill switch. Its value was read if known is set, else it is the last
	// known value.
	kill  Switch
	known bool
}

// A Switch is the state of the kill switch.
type Switch struct {
	// On is the last known value.
	On bool

	// Problem is the reason why the present value is unknown or invalid, or empty.
	Problem string

	// Unreadable reports whether the switch may have been turned on since it was last read: no
	// change is permitted then. It is false for a switch that does not exist.
	Unreadable bool
}

// New returns an authority. It reads nothing until it is used.
func New(cfg Config, reader client.Reader) *Authority {
	return &Authority{cfg: cfg, reader: reader}
}

// Recall sets the last known value of the kill switch, which the previous leader saved. It applies
// while the switch does not exist.
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

// Pool returns the present decision on changes of a pool.
func (a *Authority) Pool(ctx context.Context, name string) (Decision, error) {
	s, err := a.state(ctx)
	if err != nil {
		return "", err
	}
	return a.pool(s, name)
}

// NeedsApproval reports whether voluntary changes of a pool need approval, according to the last
// read. Before the first read it returns true.
func (a *Authority) NeedsApproval(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		return true
	}
	p := a.last.pools[name]
	return p != nil && (a.cfg.Approve || p.Spec.Mode == v1alpha1.ModeApprove)
}

// Spec returns the present state of a pool, nil if it does not exist. The pool is shared and must
// not be modified.
func (a *Authority) Spec(ctx context.Context, name string) (*v1alpha1.CapacityPool, error) {
	s, err := a.state(ctx)
	if err != nil {
		return nil, err
	}
	return s.pools[name], s.unlisted
}

// Cluster returns the present decision on changes that span pools.
func (a *Authority) Cluster(ctx context.Context) (Decision, error) {
	s, err := a.state(ctx)
	if err != nil {
		return "", err
	}
	return a.cluster(s), nil
}

// Claims returns the namespace of another release that leads and has claimed a pool. If there is no
// such release, rival is empty, and unclaimed contains the pools that this release must claim
// before it may change them, ordered by name. They are shared and must not be modified. A claim is
// the namespace of the release in status.controller; after a claim, [Authority.Forget] must be
// called. Claims always reads the present state: the release from which a pool is taken may have
// just resumed leading.
//
// CapacityPools are cluster-scoped, and every release decides for all of them: after a claim of one
// pool, other releases change nothing.
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

// Forget discards the state, so that the next call reads it again.
func (a *Authority) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = nil
}

// Check returns nil if the permit in ctx allows a change now, a [Denied] if it does not, an
// [Unpermitted] if ctx has no permit, and another error if the state could not be read.
func (a *Authority) Check(ctx context.Context) error {
	p, ok := ctx.Value(permitKey{}).(permit)
	if !ok {
		return &Unpermitted{What: "a call to a cloud"}
	}
	_, err := a.check(ctx, p)
	return err
}

// check verifies p against the present state and returns the time until which it is valid. Undoing
// Spotter's own changes requires the Lease, the active mode of the controller and no rival, but no
// state of the kill switch or of a pool: undoing is part of a stop, and must not fail because these
// cannot be read.
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
		case s.rival != "": // the change to undo may be the rival's
			v = Claimed
		}
	}
	if err == nil && v != Active {
		err = &Denied{Pool: p.pool, Decision: v}
	}
	return s.until, err
}

// pool returns the decision on a pool.
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

// state returns a state that was read at most Config.Fresh before the call. It returns an error if
// this replica must not write at all, or if ctx ends; the read then continues for other callers.
func (a *Authority) state(ctx context.Context) (*state, error) {
	return a.stateWithin(ctx, a.cfg.Fresh)
}

// stateWithin returns a state that was read at most fresh before the call, like state.
func (a *Authority) stateWithin(ctx context.Context, fresh time.Duration) (*state, error) {
	now := a.cfg.Clock.Now()
	a.mu.Lock()
	s := a.last
	a.mu.Unlock()
	if s != nil && now.Sub(s.at) < fresh && !now.Before(s.at) {
		return s, s.fence
	}
	for range 2 { // the first read may have started long before the call; the second starts after it
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

// read reads the whole state. Each object has the full Config.ReadMax, so that a slow read does not
// reduce the time of the others. The age of the state counts from the start of the read.
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

// findRival returns the namespace of the release that acts, empty if it is this release or none. It
// is the leading release that has claimed the first pool by name. So two releases that have each
// claimed some of the pools, because one ended while claiming, do not wait for each other.
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

// leads reports whether the Lease of a release is held, or expired less than its duration ago: a
// release that was killed acquires its own Lease again after it has expired, and then acts on its
// pools at once. A Lease that cannot be read counts as held: two active releases are worse than
// none.
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

// readSwitch reads the kill switch. While it does not exist or does not have the annotation, the
// last value applies: deleting the switch does not resume changes. A value that is neither true nor
// false turns the switch on, as the safe choice.
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
