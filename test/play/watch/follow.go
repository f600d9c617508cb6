package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// Options say where to watch.
type Options struct {
	Config
	Kubeconfig, AuditLog string

	// Unseen is what a ledger may lack of a pod, see [Watcher.Ledger].
	Unseen time.Duration
}

// The orders that [Run] takes, a line each.
const (
	OrderRest     = "rest"     // no mark may stand without cause
	OrderUnmarked = "unmarked" // no mark may stand
	OrderLedgers  = "ledgers"  // ledgers must hold what was used
	OrderApart    = "apart "   // a replica is cut off, for the duration that follows
	OrderUnread   = "unread "  // no replica can read the kill switch, for the duration that follows
	OrderEnded    = "ended "   // the controllers of the namespace that follows have ended, and another release leads
	OrderTaken    = "taken"    // the pools of releases that ended must be claimed by others
)

var followed = []schema.GroupVersionResource{
	{Version: "v1", Resource: "nodes"}, {Version: "v1", Resource: "pods"}, {Group: "policy", Version: "v1",
		Resource: "poddisruptionbudgets"},
	{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}, {Group: "karpenter.sh", Version: "v1",
		Resource: "nodeclaims"},
	{Group: "spotter.dev", Version: "v1alpha1", Resource: "gpubudgets"},
}

// Run watches until ctx or in ends, and writes each finding to out as it is made, one a
// line. It reads orders from in, and answers each with "done:" and what was judged.
func Run(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return err
	}
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	log, err := openTail(o.AuditLog)
	if err != nil {
		return err
	}
	defer log.file.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &runner{o: o, w: New(o.Config), out: out, log: log, seen: make(chan change, 1024), budgets: map[string]Budget{}}
	informers := dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
	for _, gvr := range followed {
		if _, err := informers.ForResource(gvr).Informer().AddEventHandler(r.handler(ctx, gvr.Resource)); err != nil {
			return err
		}
	}
	informers.Start(ctx.Done())
	defer informers.Shutdown()
	defer cancel()
	return r.loop(ctx, lines(ctx, in))
}

// A change is an object as it is now, or is no more.
type change struct {
	at     time.Time
	of     string
	object *unstructured.Unstructured
	gone   bool
}

// A runner feeds a watcher.
type runner struct {
	o       Options
	w       *Watcher
	out     io.Writer
	log     *tail
	seen    chan change
	budgets map[string]Budget
	told    int
}

func (r *runner) handler(ctx context.Context, of string) cache.ResourceEventHandler {
	send := func(o any, gone bool) {
		if last, missed := o.(cache.DeletedFinalStateUnknown); missed {
			o = last.Obj
		}
		if u, ok := o.(*unstructured.Unstructured); ok {
			select {
			case r.seen <- change{time.Now(), of, u, gone}:
			case <-ctx.Done():
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { send(o, false) }, UpdateFunc: func(_, o any) {
			send(o,
				false)
		}, DeleteFunc: func(o any) { send(o, true) },
	}
}

// loop takes objects and the audit log in turn. A request is read before its effect is judged,
// since it is in the log by then.
func (r *runner) loop(ctx context.Context, orders <-chan string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case x := <-r.seen:
			err = errors.Join(r.audit(), r.take(x))
		case <-tick.C:
			err = r.audit()
			r.w.JudgeBooked(time.Now())
		case order, ok := <-orders:
			if !ok {
				return nil
			}
			if err = r.audit(); err == nil {
				r.obey(order)
			}
		}
		if err != nil {
			return err
		}
		r.tell()
	}
}

func (r *runner) audit() error {
	for {
		x, err := r.log.next()
		if x == nil || err != nil {
			return err
		}
		r.w.Request(x)
	}
}

func (r *runner) take(x change) error {
	switch x.of {
	case "nodes":
		if x.gone {
			r.w.NodeGone(x.object.GetName())
			return nil
		}
		var n corev1.Node
		if err := convert(x.object, &n); err != nil {
			return err
		}
		r.w.Node(x.at, r.w.nodeOf(&n))
	case "nodeclaims":
		if n := claimOf(x.object); x.gone {
			r.w.NodeGone(n.Name)
		} else {
			r.w.Node(x.at, n)
		}
	case "pods":
		var p corev1.Pod
		if err := convert(x.object, &p); err != nil {
			return err
		}
		r.w.Pod(x.at, r.w.podOf(&p))
		if x.gone {
			r.w.PodGone(x.at, p.Namespace, p.Name)
		}
	case "poddisruptionbudgets":
		var b policyv1.PodDisruptionBudget
		if err := convert(x.object, &b); err != nil {
			return err
		}
		if !x.gone {
			r.w.PDB(x.at, pdbOf(&b))
		}
	case "nodepools":
		r.w.NodePool(x.at, x.object.GetName(), limitsOf(x.object)...)
	case "gpubudgets":
		if b, counted := budgetOf(x.object); x.gone {
			delete(r.budgets, b.Namespace+"/"+b.Name)
		} else if counted {
			r.budgets[b.Namespace+"/"+b.Name] = b
			r.w.Booked(x.at, b, r.o.Unseen)
		}
	}
	return nil
}

func convert(u *unstructured.Unstructured, to any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, to); err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

func (r *runner) obey(order string) {
	now := time.Now()
	for prefix, do := range map[string]func(time.Time, time.Duration){OrderApart: r.w.Apart, OrderUnread: r.w.Unread} {
		if text, ok := strings.CutPrefix(order, prefix); ok {
			d, err := time.ParseDuration(text)
			if err != nil {
				r.w.find(now, "order", "%v", err)
			}
			do(now, d)
		}
	}
	if namespace, ok := strings.CutPrefix(order, OrderEnded); ok {
		r.w.Ended(now, namespace)
	}
	switch order {
	case OrderTaken:
		r.w.Taken(now)
	case OrderRest:
		r.w.Rest(now)
	case OrderUnmarked:
		r.w.Unmarked(now)
	case OrderLedgers:
		for _, key := range sorted(r.budgets) {
			r.w.Ledger(now, r.budgets[key], r.o.Unseen)
		}
	}
	r.tell()
	fmt.Fprintf(r.out, "done: %d drains and %d evictions seen\n", r.w.drains, r.w.asked)
}

// tell writes what was found since the last time.
func (r *runner) tell() {
	for _, f := range r.w.findings[r.told:] {
		fmt.Fprintln(r.out, f)
	}
	r.told = len(r.w.findings)
}

func number(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}
