package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/queue"
	"github.com/spotter-dev/spotter/policy"
)

// notices reads our own queue, if there is one.
func (w *wiring) notices(ctx context.Context) error {
	if w.f.Notices.QueueURL == "" {
		return nil
	}
	cfg := queue.DefaultConfig()
	cfg.URL, cfg.Namespace, cfg.Log = w.f.Notices.QueueURL, w.f.Namespace, w.log
	if len(w.f.Prices.Regions) > 0 {
		cfg.Region = w.f.Prices.Regions[0]
	}
	sqs, err := queue.Dial(ctx, cfg)
	if err != nil {
		return wrong(w.f.fault("notices.queueURL", err), "give credentials as the AWS CLI takes them")
	}
	sink := &noticeSink{Sink: w.observer, nodes: w.manager.GetClient()}
	if w.groups != nil {
		sink.groups = w.groups
	}
	q, err := queue.New(cfg, sqs, w.manager.GetAPIReader(), sink)
	if err != nil {
		return wrong(w.f.fault("notices.queueURL", err), "give the URL of a queue, as https://sqs.us-east-1.amazonaws.com/123456789012/spotter")
	}
	sink.rivals = q.Rivals
	if err := ctrlmetrics.Registry.Register(q); err != nil {
		return fmt.Errorf("metrics of the queue: %w", err)
	}
	w.parts.Judges = append(w.parts.Judges, judged(func(string) []metav1.Condition { return noticesRead(q.Err()) }))
	return w.manager.Add(q)
}

// conditionNotices says whether the queue of notices is read.
const conditionNotices = "NoticesRead"

func noticesRead(err error) []metav1.Condition {
	c := metav1.Condition{Type: conditionNotices, Status: metav1.ConditionTrue, Reason: "Read", Message: "the queue of notices is read"}
	switch {
	case errors.Is(err, queue.ErrRival):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Rival", err.Error()
	case err != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "QueueFailed", err.Error()
	}
	return []metav1.Condition{c}
}

// A noticeSink passes notices of the queue on, with who else drains the node because
// of them: EKS, as the groups know, and whoever reads a queue of warnings too.
type noticeSink struct {
	backend.Sink
	nodes  client.Reader
	groups warned // nil without
	rivals func() []queue.Rival
}

// A warned takes a warning and says who else drains the node because of it;
// [asg.Regions] is one.
type warned interface {
	Notice(backend.Notice) policy.Actor
}

// Notice implements backend.Sink.
func (s *noticeSink) Notice(n backend.Notice) {
	if s.groups != nil {
		if by := s.groups.Notice(n); n.ActedBy == policy.ActorNone {
			n.ActedBy = by
		}
	}
	if n.ActedBy == policy.ActorNone && n.ReclaimAt != 0 {
		n.ActedBy = s.rival(n.Machine)
	}
	s.Sink.Notice(n)
}

// rival returns who else is warned and drains the node of a machine: Karpenter those
// that it made, the Node Termination Handler all.
func (s *noticeSink) rival(machine string) policy.Actor {
	by := policy.ActorNone
	for _, r := range s.rivals() {
		switch r.Actor {
		case policy.ActorNTH:
			return policy.ActorNTH
		case policy.ActorKarpenter:
			by = policy.ActorKarpenter
		}
	}
	if by == policy.ActorNone || !s.karpenters(machine) {
		return policy.ActorNone
	}
	return by
}

// labelNodePool is on the nodes that Karpenter made.
const labelNodePool = "karpenter.sh/nodepool"

// karpenters reports whether Karpenter made the node of a machine.
func (s *noticeSink) karpenters(machine string) bool {
	var nodes corev1.NodeList
	if err := s.nodes.List(context.Background(), &nodes, client.HasLabels{labelNodePool}, client.UnsafeDisableDeepCopy); err != nil {
		return false // two drains of one node do less harm than none
	}
	id := machine[strings.LastIndexByte(machine, '/')+1:]
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if n.Name == machine || n.Spec.ProviderID != "" && strings.HasSuffix(n.Spec.ProviderID, "/"+id) {
			return true
		}
	}
	return false
}
