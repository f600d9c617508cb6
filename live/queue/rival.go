package queue

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
)

// ErrRival is returned for a queue that another reads, too.
var ErrRival = errors.New("another consumer reads the queue")

// A Rival is a workload that reads a queue.
type Rival struct {
	// Who is "Deployment kube-system/karpenter", or "the configuration".
	Who string

	// Actor is what it is; ActorNone if that is not known.
	Actor policy.Actor

	// Queue is the URL or the name of its queue.
	Queue string
}

// Rivals returns those that were found at the last look, whatever queue they read.
// Who reads a queue of warnings drains the nodes that are warned.
func (q *Queue) Rivals() []Rival {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.rivals)
}

// The names of flags and of variables by which Karpenter and the AWS Node
// Termination Handler are told their queue, and the key of the ConfigMap of older
// versions of Karpenter.
var (
	flags     = map[string]policy.Actor{"--interruption-queue": policy.ActorKarpenter, "--queue-url": policy.ActorNTH}
	variables = map[string]policy.Actor{
		"INTERRUPTION_QUEUE": policy.ActorKarpenter, "aws.interruptionQueueName": policy.ActorKarpenter, "QUEUE_URL": policy.ActorNTH,
	}
)

// settings is the ConfigMap of older versions of Karpenter.
const settings = "karpenter-global-settings"

// pageMax is the most workloads of one answer.
const pageMax = 250

// Check looks for others that read the queue and returns an [ErrRival] that names the
// first. Where the cluster does not let us look, what the configuration names is all
// that is compared.
func (q *Queue) Check(ctx context.Context) error {
	var rivals []Rival
	for _, other := range q.config.Others {
		rivals = append(rivals, Rival{Who: "the configuration", Queue: other})
	}
	if q.reader != nil {
		found, err := q.look(ctx)
		if err != nil && ctx.Err() == nil && q.first("look: "+err.Error()) {
			q.config.Log.Warn("it is not known whether another consumer reads the queue", "queue", q.config.URL, "error", err)
		}
		rivals = append(rivals, found...)
	}
	q.mu.Lock()
	q.rivals = rivals
	q.mu.Unlock()
	for _, r := range rivals {
		if sameQueue(q.config.URL, r.Queue) {
			return fmt.Errorf("%w: %s reads %s, and consumers of one queue take each other's messages: give Spotter a queue of its own", ErrRival, r.Who, r.Queue)
		}
	}
	return nil
}

// look finds the workloads of the cluster that read queues.
func (q *Queue) look(ctx context.Context) ([]Rival, error) {
	var all []Rival
	var errs []error
	look := looker{q.reader, q.config.Namespace, map[client.ObjectKey]map[string]string{}}
	err := pages(ctx, q.reader, &appsv1.DeploymentList{}, func(l *appsv1.DeploymentList) {
		for i := range l.Items {
			d := &l.Items[i]
			found, err := look.rivals(ctx, "Deployment", d.Namespace, d.Name, &d.Spec.Template.Spec)
			all, errs = append(all, found...), append(errs, err)
		}
	})
	errs = append(errs, err)
	err = pages(ctx, q.reader, &appsv1.DaemonSetList{}, func(l *appsv1.DaemonSetList) {
		for i := range l.Items {
			d := &l.Items[i]
			found, err := look.rivals(ctx, "DaemonSet", d.Namespace, d.Name, &d.Spec.Template.Spec)
			all, errs = append(all, found...), append(errs, err)
		}
	})
	return all, errors.Join(append(errs, err)...)
}

// pages lists objects page by page.
func pages[L client.ObjectList](ctx context.Context, r client.Reader, list L, visit func(L)) error {
	for token := ""; ; {
		if err := r.List(ctx, list, client.Limit(pageMax), client.Continue(token)); err != nil {
			return fmt.Errorf("listing workloads: %w", err)
		}
		visit(list)
		if token = list.GetContinue(); token == "" {
			return nil
		}
	}
}

// A looker reads the ConfigMaps that containers take variables from, each once.
type looker struct {
	reader client.Reader
	own    string // the namespace of Spotter
	read   map[client.ObjectKey]map[string]string
}

// rivals returns the queues that the containers of a workload are told.
func (l *looker) rivals(ctx context.Context, kind, namespace, name string, spec *corev1.PodSpec) ([]Rival, error) {
	var all []Rival
	var errs []error
	add := func(actor policy.Actor, queue string) {
		if queue != "" {
			all = append(all, Rival{kind + " " + namespace + "/" + name, actor, queue})
		}
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if args := slices.Concat(c.Command, c.Args); namespace != l.own || !slices.Contains(args, "run") {
			arguments(args, add) // else it is a replica of ours, whose flag has the name of NTH's
		}
		for _, v := range c.Env {
			actor, ours := variables[v.Name]
			if !ours {
				continue
			}
			value := v.Value
			if from := v.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
				data, err := l.configMap(ctx, namespace, from.ConfigMapKeyRef.Name)
				value, errs = data[from.ConfigMapKeyRef.Key], append(errs, err)
			}
			add(actor, value)
		}
		for _, from := range c.EnvFrom {
			if from.ConfigMapRef == nil {
				continue
			}
			data, err := l.configMap(ctx, namespace, from.ConfigMapRef.Name)
			errs = append(errs, err)
			for key, value := range data {
				if actor, ours := variables[from.Prefix+key]; ours {
					add(actor, value)
				}
			}
		}
		if strings.Contains(c.Image, "karpenter") {
			data, err := l.configMap(ctx, namespace, settings)
			errs = append(errs, err)
			add(policy.ActorKarpenter, data["aws.interruptionQueueName"])
		}
	}
	slices.SortFunc(all, func(a, b Rival) int { return strings.Compare(a.Queue, b.Queue) })
	return slices.Compact(all), errors.Join(errs...)
}

// arguments finds queues in a command line.
func arguments(args []string, add func(policy.Actor, string)) {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		actor, ours := flags[name]
		switch {
		case !ours:
		case joined:
			add(actor, value)
		case i+1 < len(args):
			add(actor, args[i+1])
		}
	}
}

// configMap returns what a ConfigMap holds, nothing if there is none.
func (l *looker) configMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if data, known := l.read[key]; known {
		return data, nil
	}
	var m corev1.ConfigMap
	err := l.reader.Get(ctx, key, &m)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading ConfigMap %v: %w", key, err)
	}
	l.read[key] = m.Data
	return m.Data, nil
}

// sameQueue reports whether a queue is the one that other names by its URL or, as
// Karpenter does, by its name. Two URLs are of one queue when account and name are
// equal: a queue answers under several hosts.
func sameQueue(ours, other string) bool {
	a, b := queuePath(ours), queuePath(other)
	if !strings.Contains(b, "/") {
		return a[strings.LastIndex(a, "/")+1:] == b
	}
	return a == b && (region(ours) == "" || region(other) == "" || region(ours) == region(other))
}

// queuePath returns "account/name" of a URL, or the name.
func queuePath(queue string) string {
	if u, err := url.Parse(queue); err == nil && u.Host != "" {
		queue = u.Path
	}
	return strings.Trim(queue, "/")
}

// region returns the region of a queue's URL, empty where its host does not tell.
func region(queue string) string {
	u, err := url.Parse(queue)
	if err != nil {
		return ""
	}
	for _, part := range strings.Split(u.Hostname(), ".") {
		if strings.Count(part, "-") >= 2 {
			return part
		}
	}
	return ""
}
