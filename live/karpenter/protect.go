package karpenter

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
)

// Reasons why Spotter protects a node: it is being drained, or the pods for which it was launched
// are not placed yet.
const (
	protectedDrain       = "drain"
	protectedReplacement = "replacement"
)

// protectedSince returns why and since when Spotter protects the object with these annotations.
// since is 0 if it is unknown. ours reports whether Spotter protects the object.
func protectedSince(annotations map[string]string) (why string, since policy.Time, ours bool) {
	why, at, ok := strings.Cut(annotations[ProtectedAnnotation], " ")
	if !ok {
		return "", 0, annotations[ProtectedAnnotation] != ""
	}
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return why, 0, true
	}
	return why, policy.TimeOf(t), true
}

// protectedFor reports whether Spotter protects o for the given reason.
func protectedFor(o client.Object, why string) bool {
	is, _, ours := protectedSince(o.GetAnnotations())
	return ours && is == why
}

// A nodeDrain is the state that one of Spotter's drains stores on its node.
type nodeDrain struct {
	Pool      string      `json:"pool"`
	ReclaimAt policy.Time `json:"reclaimAt"`
	After     []string    `json:"after"`
}

// drainOf returns the state of Spotter's drain of a node. ours reports whether there is such a
// drain; d is empty if the state cannot be decoded.
func drainOf(node *corev1.Node) (d nodeDrain, ours bool) {
	text, ours := node.Annotations[drain.AnnotationDrain]
	if json.Unmarshal([]byte(text), &d) != nil {
		return nodeDrain{}, ours
	}
	return d, ours
}

// A protectionSweeper removes Spotter's obsolete protections. After a restart, a protection may
// last up to ProtectIdle longer.
type protectionSweeper struct {
	cfg     *Config
	log     *slog.Logger
	api     *apiReader
	writes  *writer
	budgets *budgetTable

	mu   sync.Mutex
	idle map[string]policy.Time // since when no reason to protect the NodeClaim or Node is known
}

// sweep removes Spotter's obsolete protections in every mode of the pool and even if the pool no
// longer exists. A drain removes the protections of its replacements when it ends. The remaining
// ones are of machines that were bought under a notice, for which no drain waits, and of drains
// that a crash interrupted. Pools that are not active need no protection.
func (p *protectionSweeper) sweep(ctx context.Context, claims []karpv1.NodeClaim, active map[string]bool) error {
	nodes, waited, err := p.api.drains(ctx)
	if err != nil {
		return err
	}
	p.budgets.freeShown(nodes)
	var errs []error
	idle, settled := map[string]bool{}, map[string]bool{} // settled, by Node: its NodeClaim is no longer protected
	for i := range claims {
		c := &claims[i]
		_, _, ours := protectedSince(c.Annotations)
		if settled[c.Status.NodeName] = !ours; !ours {
			continue
		}
		over, err := !active[c.Labels[PoolLabel]] && !waited[c.Annotations[TokenAnnotation]], error(nil)
		if !over {
			over, err = p.over(ctx, c, nodes, waited, idle)
		}
		if over {
			p.log.Info("no longer protected", "nodeClaim", c.Name, "replaced", c.Annotations[ReplacesAnnotation])
			err = p.writes.unprotectClaim(ctx, p.writes.ahead, c.Name)
		}
		errs = append(errs, err)
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		why, at, ours := protectedSince(n.Annotations)
		if _, drains := drainOf(n); !ours || drains {
			continue
		}
		over, there := settled[name]
		switch {
		case why == protectedDrain:
			over = p.cfg.now().Sub(at) >= p.cfg.ProtectIdle
		case !there: // its NodeClaim is gone, does not report it yet, or reports another Node
			over = p.idleFor("node/"+name, idle) >= p.cfg.ProtectIdle
		}
		// Karpenter may have copied an obsolete protection to the Node while it was removed from
		// the NodeClaim. Any other protection of the Node is removed together with the NodeClaim's.
		if over {
			errs = append(errs, p.writes.unprotectNode(ctx, p.writes.ahead, name))
		}
	}
	p.keepIdle(idle)
	return errors.Join(errs...)
}

// over reports whether the protection of a replacement must end, because its pods have been placed
// or nothing of the drain that it was launched for remains.
func (p *protectionSweeper) over(ctx context.Context, c *karpv1.NodeClaim, nodes map[string]*corev1.Node, waited,
	idle map[string]bool) (bool, error) {
	if waited[c.Annotations[TokenAnnotation]] {
		return false, nil
	}
	_, at, _ := protectedSince(c.Annotations)
	replaced := c.Annotations[ReplacesAnnotation]
	if replaced == "" {
		return p.cfg.now().Sub(at) >= p.cfg.ProtectMax, nil
	}
	if !claimIs(c, karpv1.ConditionTypeInitialized) {
		return false, nil
	}
	if old := nodes[replaced]; old != nil {
		if _, drains := drainOf(old); drains || drained(old) {
			return false, nil
		}
	} else if busy, err := p.api.busy(ctx, c.Status.NodeName); err != nil || busy {
		return busy, err
	}
	return p.idleFor(c.Name, idle) >= p.cfg.ProtectIdle, nil
}

// idleFor returns for how long no reason to protect an object has been known, and adds it to idle.
// name is the name of a NodeClaim, or "node/" and the name of a Node that no NodeClaim reports.
func (p *protectionSweeper) idleFor(name string, idle map[string]bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle[name] = true
	if p.idle[name] == 0 {
		p.idle[name] = p.cfg.now()
	}
	return p.cfg.now().Sub(p.idle[name])
}

// keepIdle forgets all objects that are not in idle.
func (p *protectionSweeper) keepIdle(idle map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.idle, func(name string, _ policy.Time) bool { return !idle[name] })
}
