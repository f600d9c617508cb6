package queue

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
)

// ErrRival is returned if another consumer also reads the queue.
var ErrRival = errors.New("another consumer reads the queue")

// A Rival is a workload that reads a queue and whose ServiceAccount may change nodes and evict pods
// in the whole cluster.
type Rival struct {
	// Who identifies the workload, for example "Deployment kube-system/karpenter".
	Who string

	// Actor is the controller that it runs; ActorNone if that is unknown.
	Actor policy.Actor

	// Queue is the URL or the name of its queue; empty if its manifest does not contain the value.
	Queue string
}

// Rivals returns the rivals that the last search found, whatever queue they read.
func (q *Queue) Rivals() []Rival { return q.rivals.all() }

// A rivalFinder searches for workloads that read queues. Only the searching goroutine replaces the
// result; any goroutine may read it.
type rivalFinder struct {
	config *Config
	reader client.Reader // nil disables the search
	found  atomic.Pointer[[]Rival]
}

func (f *rivalFinder) all() []Rival {
	if all := f.found.Load(); all != nil {
		return slices.Clone(*all)
	}
	return nil
}

// settings are the flags and environment variables with which Karpenter and the AWS Node
// Termination Handler are given their queue. A Spotter in another namespace has its queue in a
// ConfigMap and is not found.
var settings = []string{"--interruption-queue", "--queue-url", "INTERRUPTION_QUEUE", "QUEUE_URL"}

// drainers maps controllers that drain nodes under notice to their Actor. A key is a part of the
// image name or the value of the label app.kubernetes.io/name.
var drainers = map[string]policy.Actor{"karpenter": policy.ActorKarpenter,
	"aws-node-termination-handler": policy.ActorNTH}

// pageMax is the maximum number of objects in one response.
const pageMax = 250

// look searches for rivals. Without the permissions for that it finds none: a rival is then noticed
// only when it drains a node under notice. A repeated error is logged only once.
func (f *rivalFinder) look(ctx context.Context, fault *string) {
	ctx, stop := context.WithTimeout(ctx, f.config.Timeout)
	defer stop()
	rivals, err := f.find(ctx)
	if err == nil {
		f.found.Store(&rivals)
	} else if *fault != err.Error() {
		*fault = err.Error()
		f.config.Log.Warn("whether another consumer reads the queue is unknown", "queue", f.config.URL, "error", err)
	}
}

// shared returns an [ErrRival] with the first rival that reads Spotter's queue, or nil.
func (f *rivalFinder) shared() error {
	for _, r := range f.all() {
		if r.Queue != "" && sameQueue(f.config.URL, r.Queue) {
			return fmt.Errorf("%w: %s reads %s, and each message goes to one of its consumers: give Spotter its own queue",
				ErrRival, r.Who, r.Queue)
		}
	}
	return nil
}

// find returns the workloads that read queues and may drain nodes. It reads only the workloads of
// ServiceAccounts to which a ClusterRoleBinding grants this: workloads that a tenant can create in
// a namespace cannot be rivals and do not slow down the search.
func (f *rivalFinder) find(ctx context.Context) ([]Rival, error) {
	accounts, err := f.drainingAccounts(ctx)
	if err != nil {
		return nil, err
	}
	namespaces := map[string]bool{}
	for a := range accounts {
		namespaces[a.Namespace] = true
	}
	var all []Rival
	for namespace := range namespaces {
		add := func(kind string, of *metav1.ObjectMeta, t *corev1.PodTemplateSpec) {
			account := types.NamespacedName{Namespace: namespace, Name: t.Spec.ServiceAccountName}
			if accounts[account] || accounts[types.NamespacedName{Namespace: namespace}] {
				all = append(all, rivalsIn(kind+" "+namespace+"/"+of.Name, t)...)
			}
		}
		in := client.InNamespace(namespace)
		err := errors.Join(
			pages(ctx, f.reader, &appsv1.DeploymentList{}, func(l *appsv1.DeploymentList) {
				for i := range l.Items {
					add("Deployment", &l.Items[i].ObjectMeta, &l.Items[i].Spec.Template)
				}
			}, in),
			pages(ctx, f.reader, &appsv1.DaemonSetList{}, func(l *appsv1.DaemonSetList) {
				for i := range l.Items {
					add("DaemonSet", &l.Items[i].ObjectMeta, &l.Items[i].Spec.Template)
				}
			}, in))
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Rival) int { return strings.Compare(a.Who+" "+a.Queue, b.Who+" "+b.Queue) })
	return slices.Compact(all), nil
}

// drainingAccounts returns the ServiceAccounts to which ClusterRoleBindings grant the permissions
// to change nodes and evict pods. An entry without a name means all ServiceAccounts of the
// namespace.
func (f *rivalFinder) drainingAccounts(ctx context.Context) (map[types.NamespacedName]bool, error) {
	rules := map[string][]rbacv1.PolicyRule{}
	err := pages(ctx, f.reader, &rbacv1.ClusterRoleList{}, func(l *rbacv1.ClusterRoleList) {
		for i := range l.Items {
			rules[l.Items[i].Name] = l.Items[i].Rules
		}
	})
	if err != nil {
		return nil, err
	}
	granted := map[types.NamespacedName][]rbacv1.PolicyRule{}
	err = pages(ctx, f.reader, &rbacv1.ClusterRoleBindingList{}, func(l *rbacv1.ClusterRoleBindingList) {
		for i := range l.Items {
			for _, s := range l.Items[i].Subjects {
				key := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
				if namespace, ok := strings.CutPrefix(s.Name, "system:serviceaccounts:"); ok && s.Kind == rbacv1.GroupKind {
					key = types.NamespacedName{Namespace: namespace}
				} else if s.Kind != rbacv1.ServiceAccountKind {
					continue
				}
				granted[key] = append(granted[key], rules[l.Items[i].RoleRef.Name]...)
			}
		}
	})
	accounts := map[types.NamespacedName]bool{}
	for account, rules := range granted {
		if allows(rules, "nodes", "patch", "update") && allows(rules, "pods/eviction", "create") {
			accounts[account] = true
		}
	}
	return accounts, err
}

// allows reports whether rules allow one of the verbs on all objects of a resource in the core
// group.
func allows(rules []rbacv1.PolicyRule, resource string, verbs ...string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		has := func(list []string, x ...string) bool {
			return slices.Contains(list, "*") || slices.ContainsFunc(x, func(s string) bool { return slices.Contains(list, s) })
		}
		return len(r.ResourceNames) == 0 && has(r.APIGroups, "") && has(r.Resources, resource) && has(r.Verbs, verbs...)
	})
}

// pages lists objects page by page and calls visit for each page.
func pages[L client.ObjectList](ctx context.Context, r client.Reader, list L, visit func(L),
	options ...client.ListOption) error {
	for token := ""; ; {
		if err := r.List(ctx, list, append(options, client.Limit(pageMax), client.Continue(token))...); err != nil {
			return fmt.Errorf("looking for other consumers: %w", err)
		}
		visit(list)
		if token = list.GetContinue(); token == "" {
			return nil
		}
	}
}

// rivalsIn returns a Rival for each queue that the containers of a workload read.
func rivalsIn(who string, t *corev1.PodTemplateSpec) []Rival {
	var all []Rival
	for i := range t.Spec.Containers {
		c := &t.Spec.Containers[i]
		actor := drainers[t.Labels["app.kubernetes.io/name"]]
		for name, a := range drainers {
			if strings.Contains(c.Image, name) {
				actor = a
			}
		}
		args := slices.Concat(c.Command, c.Args)
		for i, arg := range args {
			name, value, joined := strings.Cut(arg, "=")
			if !slices.Contains(settings, name) {
				continue
			}
			if !joined && i+1 < len(args) {
				value = args[i+1]
			}
			all = append(all, Rival{who, actor, value})
		}
		for _, v := range c.Env {
			if slices.Contains(settings, v.Name) && (v.Value != "" || v.ValueFrom != nil) {
				all = append(all, Rival{who, actor, v.Value})
			}
		}
	}
	return all
}

// sameQueue reports whether other, a URL or a name as Karpenter uses, identifies the queue with the
// URL ours. Two URLs identify the same queue if account and name are equal and the regions do not
// differ: a queue is available under several hosts.
func sameQueue(ours, other string) bool {
	a, b := queuePath(ours), queuePath(other)
	if !strings.Contains(b, "/") {
		return a[strings.LastIndex(a, "/")+1:] == b
	}
	return a == b && (region(ours) == "" || region(other) == "" || region(ours) == region(other))
}

// queuePath returns "account/name" of a URL, or the name itself.
func queuePath(queue string) string {
	if u, err := url.Parse(queue); err == nil && u.Host != "" {
		queue = u.Path
	}
	return strings.Trim(queue, "/")
}

// region returns the region in a queue's URL, empty if its host does not contain it.
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
