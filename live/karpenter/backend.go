package karpenter

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// The kinds of Karpenter that this package uses.
var (
	groupVersion  = schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}
	nodePoolKind  = groupVersion.WithKind("NodePool")
	nodeClaimKind = groupVersion.WithKind("NodeClaim")
)

// AddToScheme registers Karpenter's kinds in a scheme. The client passed to New, and the manager
// passed to SetupWithManager, need them.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(groupVersion, &karpv1.NodePool{}, &karpv1.NodePoolList{}, &karpv1.NodeClaim{}, &karpv1.NodeClaimList{})
	metav1.AddToGroupVersion(s, groupVersion)
	return nil
}

// A Backend steers, launches and drains through Karpenter. Its methods are safe for concurrent use.
// After a restart, the state of its parts is rebuilt from the objects of the cluster or from the
// next plan; each part documents other effects of losing its state.
type Backend struct {
	cfg         *Config
	log         *slog.Logger
	api         *apiReader
	writes      *writer
	classes     *classFinder
	states      *stateTable
	nodePools   *nodePoolSteerer
	launcher    *launcher
	outcomes    *outcomeTable
	budgets     *budgetTable
	protections *protectionSweeper
	informer    *informer
}

// New returns a backend. It reads through c or, where reads must be current, through r, and reports
// its observations to sink.
func New(cfg Config, c client.Client, r client.Reader, sink backend.Sink) (*Backend, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if c == nil || r == nil || sink == nil {
		return nil, fmt.Errorf("karpenter: a client, a reader and a sink are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Ahead == nil {
		cfg.Ahead = c
	}
	if cfg.Since == 0 {
		cfg.Since = policy.TimeOf(cfg.Clock.Now().Truncate(time.Second))
	}
	b := &Backend{cfg: &cfg, log: cfg.Log.With("backend", BackendName), api: &apiReader{client: c, reader: r},
		states: newStateTable()}
	b.writes = &writer{cfg: b.cfg, api: b.api, ahead: cfg.Ahead}
	b.classes = &classFinder{cfg: b.cfg, api: b.api}
	b.nodePools = &nodePoolSteerer{cfg: b.cfg, log: b.log, sink: sink, api: b.api, writes: b.writes, classes: b.classes,
		states: b.states}
	claims := &claimConverter{cfg: b.cfg, api: b.api}
	b.outcomes = &outcomeTable{sink: sink, claims: claims, ends: map[string]launchEnd{}}
	b.launcher = &launcher{
		cfg: b.cfg, log: b.log, api: b.api, writes: b.writes, classes: b.classes, outcomes: b.outcomes, turn: semaphore.NewWeighted(1),
	}
	b.budgets = &budgetTable{cfg: b.cfg, api: b.api, reserved: map[string]reservation{}, inherited: map[string]bool{}}
	b.protections = &protectionSweeper{
		cfg: b.cfg, log: b.log, api: b.api, writes: b.writes, budgets: b.budgets, idle: map[string]policy.Time{},
	}
	b.informer = &informer{
		cfg: b.cfg, log: b.log, sink: sink, api: b.api, claims: claims, classes: b.classes, outcomes: b.outcomes,
		reported: map[string]bool{},
	}
	return b, nil
}

var _ backend.Backend = (*Backend)(nil)

// GoogleLead returns the time from a notice on a Node of Google Cloud to its reclaim that its
// GCENodeClass requested, or 0 if it is not known. It sends no request.
func (b *Backend) GoogleLead(n *corev1.Node) time.Duration { return b.classes.googleLead(n) }

// missing reports whether the error of a list means that the API server does not have Karpenter's
// kinds.
func missing(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// observed keeps Karpenter's functions from modifying an object when they read its conditions,
// since the cache shares the object.
var observed = status.WithObservedOnly()

// claimIs reports whether a condition of c is True.
func claimIs(c *karpv1.NodeClaim, kind string) bool { return c.StatusConditions(observed).IsTrue(kind) }

// poolIsNot reports whether a condition of p is False, and returns its message.
func poolIsNot(p *karpv1.NodePool, kind string) (bool, string) {
	x := p.StatusConditions(observed).Get(kind)
	if !x.IsFalse() {
		return false, ""
	}
	return true, x.Message
}
