package asg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// Prepare keeps the Cluster Autoscaler from removing the node while it is being drained. It returns
// a [backend.Held] if the node could not be released after the drain: the group is at its minimum
// size or would balance its zones by terminating instances, or another controller is acting on the
// node. For a node that the provider reclaims, Prepare neither calls AWS nor waits for other calls,
// since many nodes may be reclaimed at once.
func (b *Backend) Prepare(ctx context.Context, node *corev1.Node) error {
	if err := b.groups.known(ctx); err != nil {
		return err
	}
	id, name, err := b.releases.groupOf(ctx, node)
	if err != nil {
		return err
	}
	if kube.IsTainted(node, TaintToBeDeleted) {
		return backend.Leave(policy.ActorClusterAutoscaler, ReasonAutoscaler, "the Cluster Autoscaler is removing node %s",
			node.Name)
	}
	_, single := b.groups.find(func(g *group) bool { return g.name == name && g.pool != conflicting })
	if single && (b.instances.taken(id) || drain.Reclaimed(node)) {
		return b.kube.mark(ctx, node.Name, swapSource)
	}
	unlock, err := b.groups.locks.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := b.groups.fresh(ctx, name)
	if err != nil {
		return err
	}
	if err := b.releases.mayLeave(ctx, node.Name, id, g); err != nil {
		return err
	}
	return b.kube.mark(ctx, node.Name, swapSource)
}

// A releaser releases instances.
type releaser struct {
	cfg       *Config
	cloud     *cloud
	kube      *kubeAPI
	groups    *groupTable
	instances *instanceTable

	mu      sync.Mutex
	volumes map[string]policy.Time // time since which a node waits for its volumes, by node
}

// mayLeave returns the reason that the instance of a node could not be released after a drain; nil
// if it could.
func (r *releaser) mayLeave(ctx context.Context, node, id string, g *group) error {
	i := g.find(id)
	if i == nil || i.state != "InService" {
		return backend.Hold(ReasonLifecycle, "instance %s of node %s is not in service in the group %s", id, node, g.name)
	}
	if r.instances.leftToEKS(g, id) {
		return backend.Leave(policy.ActorEKS, ReasonEKS,
			"EKS replaces and drains node %s itself, since AWS recommends leaving it", node)
	}
	leaving, err := r.leaving(ctx, g, id)
	if err != nil {
		return err
	}
	if g.desired-len(leaving) <= g.min {
		return backend.Hold(ReasonAtMin,
			"the group %s has a desired capacity of %d, of which %d are leaving, and a minimum of %d: an instance terminated there is replaced",
			g.name, g.desired, len(leaving), g.min)
	}
	gone := func(x string) bool { return x == id || slices.Contains(leaving, x) }
	if g.rebalances && !g.balanced(gone) {
		return backend.Hold(ReasonZones,
			"without node %s the zones of the group %s differ by more than one instance, and its AZRebalance process would then terminate another",
			node, g.name)
	}
	return nil
}

// groupOf returns the instance ID of a node and the name of its group.
func (r *releaser) groupOf(ctx context.Context, node *corev1.Node) (id, name string, err error) {
	id, ok := instanceID(node.Spec.ProviderID)
	if !ok {
		return "", "", backend.Hold(ReasonNoGroup, "node %s is not an EC2 instance: its provider ID is %q", node.Name,
			node.Spec.ProviderID)
	}
	name, ok, err = r.groups.seek(ctx, func(g *group) bool { return g.has(id) })
	if err == nil && !ok {
		err = backend.Hold(ReasonNoGroup, "instance %s of node %s is in no group of a pool", id, node.Name)
	}
	return id, name, err
}

// leaving returns the instances of g, other than but, that Spotter is draining.
func (r *releaser) leaving(ctx context.Context, g *group, but string) ([]string, error) {
	nodes, err := r.kube.nodesByInstance(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for i := range g.instances {
		x := &g.instances[i]
		if n := nodes[x.id]; n != nil && x.id != but && !x.ending() && n.Annotations[AnnotationSwap] == swapSource {
			ids = append(ids, x.id)
		}
	}
	return ids, nil
}

// Release terminates the instance of an empty node and decrements the desired size of its group. It
// succeeds once AWS has accepted the request, although the termination takes time: from then on it
// cannot be undone.
func (b *Backend) Release(ctx context.Context, node *corev1.Node) error {
	if err := b.groups.known(ctx); err != nil {
		return notYet(err)
	}
	id, name, err := b.releases.groupOf(ctx, node)
	if isHeld(err, ReasonNoGroup) {
		return b.releases.released(ctx, node, id)
	}
	if err != nil {
		return notYet(err)
	}
	unlock, err := b.groups.locks.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := b.groups.fresh(ctx, name)
	if isHeld(err, ReasonGone) {
		return b.releases.released(ctx, node, id)
	}
	if err != nil {
		return notYet(err)
	}
	i := g.find(id)
	if i == nil || i.ending() {
		return nil
	}
	if attached, err := b.releases.attached(ctx, node.Name); err != nil || attached {
		return errors.Join(err, backend.ErrNotYet)
	}
	if g.desired <= g.min {
		return backend.Hold(ReasonAtMin,
			"the group %s has a desired capacity of %d, which is its minimum: node %s would be replaced", g.name, g.desired, node.Name)
	}
	return b.releases.terminate(ctx, id)
}

// terminate terminates an instance and decrements the desired size of its group. If the result of an
// earlier request is unknown, it waits for writingMax before it sends another, until reads show the
// effect of the first. Otherwise the size could be decremented twice.
func (r *releaser) terminate(ctx context.Context, id string) error {
	e, reported := r.instances.ending(id)
	if reported && e.accepted {
		return nil
	}
	if reported && r.cfg.now().Sub(e.at) < writingMax {
		return backend.ErrNotYet
	}
	err := r.cloud.terminate(ctx, id)
	k := kindOf(err)
	if k == kindNone || k == kindUnknown {
		r.instances.setEnding(id, ending{r.cfg.now(), k == kindNone})
	}
	switch k {
	case kindNone, kindGone:
		return nil
	case kindUnknown:
		return errors.Join(held(err, "terminating instance %s", id), backend.ErrNotYet)
	}
	return notYet(held(err, "terminating instance %s", id))
}

// released handles the release of a node whose instance is in no group. It succeeds if the instance
// no longer exists. If the instance was removed from its group, Spotter may not terminate it.
func (r *releaser) released(ctx context.Context, node *corev1.Node, id string) error {
	if id == "" {
		return backend.Hold(ReasonNoGroup, "node %s is not an EC2 instance: its provider ID is %q", node.Name,
			node.Spec.ProviderID)
	}
	found, err := r.cloud.instances(ctx, []string{id})
	if err != nil {
		return notYet(held(err, "looking for instance %s", id))
	}
	if x, exists := found[id]; exists && !x.ended {
		return backend.Hold(ReasonNoGroup, "instance %s of node %s was removed from its group", id, node.Name)
	}
	return nil
}

// notYet adds [backend.ErrNotYet] to errors that resolve without action.
func notYet(err error) error {
	if isHeld(err, ReasonThrottled, ReasonBusy, ReasonExpired) {
		return errors.Join(err, backend.ErrNotYet)
	}
	return err
}

// attached reports whether volumes are still attached to a node, for at most VolumesMax.
func (r *releaser) attached(ctx context.Context, node string) (bool, error) {
	var list storagev1.VolumeAttachmentList
	if err := r.kube.client.List(ctx, &list); err != nil {
		return false, fmt.Errorf("listing volume attachments: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(list.Items, func(v storagev1.VolumeAttachment) bool { return v.Spec.NodeName == node }) {
		delete(r.volumes, node)
		return false, nil
	}
	since, ok := r.volumes[node]
	if !ok {
		since = r.cfg.now()
		r.volumes[node] = since
	}
	return r.cfg.now().Sub(since) < r.cfg.VolumesMax, nil
}

// Undo removes the marks from the node, so that the Cluster Autoscaler may remove it again, and
// abandons the launches with the tokens. It terminates exactly their instances, if they run no pods
// and are not prepared. Other instances are left to the Cluster Autoscaler. Instances that do not
// exist yet are handled when they start.
func (b *Backend) Undo(ctx context.Context, node *corev1.Node, tokens []string) error {
	var errs []error
	if node != nil {
		errs = append(errs, b.kube.unmark(ctx, node.Name, swapSource))
	}
	return errors.Join(append(errs, b.launches.each(ctx, tokens, b.launches.abandon))...)
}

// Settle ends the protection of the replacements with the tokens. Call it once the replaced node is
// gone.
func (b *Backend) Settle(ctx context.Context, tokens []string) error {
	err := b.launches.each(ctx, tokens, b.launches.settle)
	b.launches.sweep(ctx)
	return err
}
