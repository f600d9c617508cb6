package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"
)

// A reclaimer takes machines back, as the provider does, and plays Karpenter's
// interruption controller where it is to.
type reclaimer struct {
	file       string
	client     client.Client
	events     events.Recorder
	markets    *scarcity
	interrupts bool
}

// An announcement is a line of the file.
type announcement struct {
	node string
	at   time.Time // the zero time for a recommendation

	told, taken bool
}

// look is how often the file is read.
const look = 100 * time.Millisecond

// run carries out what is announced until ctx ends.
func (r *reclaimer) run(ctx context.Context) error {
	var all []*announcement
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		lines, err := r.lines()
		if err != nil {
			return err
		}
		for _, l := range lines[min(len(all), len(lines)):] {
			a, err := parse(l)
			if err != nil {
				return fmt.Errorf("TAKEN_FILE %s: %w", r.file, err)
			}
			all = append(all, a)
		}
		for _, a := range all {
			if err := r.attend(ctx, a); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "what is announced is tried again", "node", a.node)
			}
		}
	}
}

// lines returns the complete lines of the file, or no lines if the file does not exist.
func (r *reclaimer) lines() ([]string, error) {
	text, err := os.ReadFile(r.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	all := strings.Split(string(text), "\n")
	return all[:len(all)-1], err // what has no end yet is still being written
}

func parse(line string) (*announcement, error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 2 && words[0] == "recommend":
		return &announcement{node: words[1], taken: true}, nil
	case len(words) == 3 && words[0] == "reclaim":
		at, err := time.Parse(time.RFC3339Nano, words[2])
		if err != nil {
			return nil, err
		}
		return &announcement{node: words[1], at: at}, nil
	}
	return nil, fmt.Errorf("the line %q is neither of reclaim NODE TIME and recommend NODE", line)
}

// attend does what is due.
func (r *reclaimer) attend(ctx context.Context, a *announcement) error {
	if r.interrupts && !a.told {
		if err := r.interrupt(ctx, a); err != nil {
			return err
		}
		a.told = true
	}
	if a.taken || time.Now().Before(a.at) {
		return nil
	}
	var err error
	a.taken, err = r.take(ctx, a.node)
	return err
}

// interrupt is what Karpenter for AWS does when it is warned of a node: it takes the market
// for one that refuses, and deletes the NodeClaim. The reasons of its Events are those of
// karpenter-provider-aws (handleNodeClaim in pkg/controllers/interruption/utils.go).
func (r *reclaimer) interrupt(ctx context.Context, a *announcement) error {
	claim, err := claimOf(ctx, r.client, a.node)
	if claim == nil || err != nil {
		return err
	}
	e := events.Event{
		InvolvedObject: claim, Type: corev1.EventTypeNormal, Reason: "SpotRebalanceRecommendation",
		Message: "Spot rebalance recommendation was triggered", DedupeValues: []string{string(claim.UID)},
	}
	if !a.at.IsZero() {
		e.Type, e.Reason, e.Message = corev1.EventTypeWarning, "SpotInterrupted", "Spot interruption warning was triggered"
	}
	r.events.Publish(e)
	if a.at.IsZero() {
		return nil
	}
	r.markets.note([]market{{typ: claim.Labels[corev1.LabelInstanceTypeStable],
		zone:     claim.Labels[corev1.LabelTopologyZone],
		capacity: v1.CapacityTypeSpot}})
	return client.IgnoreNotFound(r.client.Delete(ctx, claim))
}

// claimOf returns the NodeClaim whose machine joins, or has joined, as a node; nil if
// there is no such NodeClaim.
func claimOf(ctx context.Context, c client.Reader, node string) (*v1.NodeClaim, error) {
	var all v1.NodeClaimList
	if err := c.List(ctx, &all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if path.Base(all.Items[i].Status.ProviderID) == node {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// take has a machine vanish, and reports whether it has: of the kwok provider that is the Node
// object, whoever wants to see to it first. One that has not joined yet vanishes once it has, unless
// its NodeClaim is deleted before.
func (r *reclaimer) take(ctx context.Context, node string) (bool, error) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	err := r.client.Delete(ctx, n, client.GracePeriodSeconds(0))
	if apierrors.IsNotFound(err) {
		claim, err := claimOf(ctx, r.client, node)
		return claim == nil || !claim.DeletionTimestamp.IsZero(), err
	}
	if err != nil {
		return false, err
	}
	err = r.client.Patch(ctx, n, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	return true, client.IgnoreNotFound(err)
}
