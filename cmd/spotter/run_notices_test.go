package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kubefake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/queue"
	"github.com/spotter-dev/spotter/policy"
)

// heardNotices remembers the notices that got through.
type heardNotices struct {
	backend.Sink
	all []backend.Notice
}

func (h *heardNotices) Notice(n backend.Notice) { h.all = append(h.all, n) }

// A drainer says of every warning that it drains the node.
type drainer struct {
	by    policy.Actor
	asked int
}

func (d *drainer) Notice(backend.Notice) policy.Actor { d.asked++; return d.by }

// nodeOf is a Node of an instance, made by Karpenter or not.
func nodeOf(name, providerID string, karpenters bool) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	if karpenters {
		n.Labels[labelNodePool] = "web"
	}
	return n
}

// TestRule09WhoDrains finds out for every notice who else drains the node: EKS what the
// groups say, else Karpenter its own nodes if it reads warnings, else the Node
// Termination Handler any node.
func TestRule09WhoDrains(t *testing.T) {
	karpenter, nth := queue.Rival{Actor: policy.ActorKarpenter}, queue.Rival{Actor: policy.ActorNTH}
	warning := backend.Notice{Machine: "i-karpenters", At: 1, ReclaimAt: 120_001}
	other := backend.Notice{Machine: "i-other", At: 1, ReclaimAt: 120_001}
	advice := backend.Notice{Machine: "i-karpenters", At: 1}
	theirs := warning
	theirs.ActedBy = policy.ActorPerson
	for name, c := range map[string]struct {
		notice backend.Notice
		groups policy.Actor
		rivals []queue.Rival
		want   policy.Actor
	}{
		"nobody else reads":                    {warning, policy.ActorNone, nil, policy.ActorNone},
		"Karpenter, its node":                  {warning, policy.ActorNone, []queue.Rival{karpenter}, policy.ActorKarpenter},
		"Karpenter, by the provider ID":        {backend.Notice{Machine: "aws:///us-east-1a/i-karpenters", ReclaimAt: 2}, policy.ActorNone, []queue.Rival{karpenter}, policy.ActorKarpenter},
		"Karpenter, by the name":               {backend.Notice{Machine: "k", ReclaimAt: 2}, policy.ActorNone, []queue.Rival{karpenter}, policy.ActorKarpenter},
		"Karpenter, another node":              {other, policy.ActorNone, []queue.Rival{karpenter}, policy.ActorNone},
		"Karpenter, part of an ID":             {backend.Notice{Machine: "karpenters", ReclaimAt: 2}, policy.ActorNone, []queue.Rival{karpenter}, policy.ActorNone},
		"Karpenter only notes recommendations": {advice, policy.ActorNone, []queue.Rival{karpenter}, policy.ActorNone},
		"NTH, any node":                        {other, policy.ActorNone, []queue.Rival{nth}, policy.ActorNTH},
		"both":                                 {other, policy.ActorNone, []queue.Rival{karpenter, nth}, policy.ActorNTH},
		"a reader that nobody knows":           {warning, policy.ActorNone, []queue.Rival{{Who: "the configuration"}}, policy.ActorNone},
		"EKS":                                  {advice, policy.ActorEKS, []queue.Rival{nth}, policy.ActorEKS},
		"who told knows better":                {theirs, policy.ActorEKS, []queue.Rival{karpenter}, policy.ActorPerson},
	} {
		nodes := kubefake.NewClientBuilder().WithObjects(nodeOf("k", "aws:///us-east-1a/i-karpenters", true), nodeOf("o", "aws:///us-east-1a/i-other", false), nodeOf("new", "", true)).Build()
		heard, groups := &heardNotices{}, &drainer{by: c.groups}
		s := &noticeSink{Sink: heard, nodes: nodes, groups: groups, rivals: func() []queue.Rival { return c.rivals }}
		s.Notice(c.notice)
		if len(heard.all) != 1 || heard.all[0].ActedBy != c.want || heard.all[0].Machine != c.notice.Machine || groups.asked != 1 {
			t.Errorf("%s: told %+v, want the node drained by %v", name, heard.all, c.want)
		}
	}
}

// Where nodes cannot be listed, and without groups, a notice gets through as nobody's.
func TestRule09NoticeWithoutNodes(t *testing.T) {
	nodes := kubefake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("forbidden")
		},
	}).Build()
	heard := &heardNotices{}
	s := &noticeSink{Sink: heard, nodes: nodes, rivals: func() []queue.Rival { return []queue.Rival{{Actor: policy.ActorKarpenter}} }}
	s.Notice(backend.Notice{Machine: "i-1", ReclaimAt: 2})
	if len(heard.all) != 1 || heard.all[0].ActedBy != policy.ActorNone {
		t.Errorf("told %+v", heard.all)
	}
}

// The condition of the queue tells a rival from a queue that cannot be read.
func TestRule09Condition(t *testing.T) {
	for _, c := range []struct {
		err    error
		status metav1.ConditionStatus
		reason string
	}{
		{nil, metav1.ConditionTrue, "Read"},
		{fmt.Errorf("%w: Deployment kube-system/karpenter reads it", queue.ErrRival), metav1.ConditionFalse, "Rival"},
		{errors.New("receiving messages: AccessDenied"), metav1.ConditionFalse, "QueueFailed"},
	} {
		got := noticesRead(c.err)
		if len(got) != 1 || got[0].Type != conditionNotices || got[0].Status != c.status || got[0].Reason != c.reason ||
			c.err != nil && !strings.Contains(got[0].Message, c.err.Error()) {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}
