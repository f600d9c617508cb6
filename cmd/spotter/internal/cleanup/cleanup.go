// Package cleanup implements the command that undoes a controller's changes to a cluster.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/live/limit"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A cleanupCall is the values of the flags of the command cleanup.
type cleanupCall struct {
	cluster    access.Cluster
	namespace  string
	deployment string
	timeout    time.Duration
	aws        bool
	regions    []string
	dryRun     bool
	form       cli.Form
}

// Command returns the command cleanup.
func Command(p *cli.Program) *cobra.Command {
	f := cleanupCall{}
	c := &cobra.Command{
		Use:   "cleanup",
		Short: "Take away what a controller left on nodes, pods and jobs, before it is uninstalled",
		Long: "cleanup makes nodes schedulable that Spotter cordoned, and removes its taints and\n" +
			"annotations from nodes, node claims and pods; jobs that it suspended for a budget go\n" +
			"on. Weights and limits that it wrote of adopted NodePools are removed. With --aws it also\n" +
			"restores Auto Scaling groups: maximum sizes, on-demand percentages, scale-in\n" +
			"protection and tags. Changes by others stay: only what carries Spotter's mark is\n" +
			"touched. Nodes, NodePools, definitions, memory and ledgers stay too. It may be run again.\n\n" +
			"No controller may act meanwhile: with --deployment it is scaled to none first, without\n" +
			"it must have been stopped.",
		Example: "  spotter cleanup --namespace spotter --dry-run --aws\n" +
			"  spotter cleanup --namespace spotter --deployment spotter",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return run(c.Context(), p, &f) },
	}
	flags := c.Flags()
	f.cluster.Register(flags)
	access.RegisterNamespace(flags, &f.namespace)
	flags.StringVar(&f.deployment, "deployment", "", "scale the Deployment `NAME` in the namespace to none first")
	flags.DurationVar(&f.timeout, "timeout", 3*time.Minute, "give up after `TIME`")
	flags.BoolVar(&f.aws, "aws", false, "also restore Auto Scaling groups, with the credentials of the AWS CLI")
	flags.StringSliceVar(&f.regions, "region", nil,
		"only groups in `REGION,…` (default: the regions of the cluster's nodes)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would be done")
	f.form.Register(c)
	f.cluster.Complete(c)
	cli.CompleteBy(c, "deployment", f.cluster.Names(&appsv1.DeploymentList{}))
	return c
}

func run(ctx context.Context, p *cli.Program, f *cleanupCall) error {
	if f.timeout <= 0 {
		return cli.Invalid(fmt.Errorf("--timeout: %v is not positive", f.timeout), "give it as 3m")
	}
	if len(f.regions) > 0 && !f.aws {
		return cli.Invalid(fmt.Errorf("--region names regions of AWS, but --aws is not given"), "add --aws")
	}
	if f.namespace == "" {
		f.namespace = access.OwnNamespace()
	}
	cfg, err := f.cluster.Config(p.Version)
	if err != nil {
		return err
	}
	c, err := newCleaner(cfg, p.Stderr, f)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err = c.clean(ctx)
	if c.looked { // print what was done, even if a part failed
		err = errors.Join(p.Print(&f.form, &c.result, func(w io.Writer, _ bool) error { return c.result.write(w) }), err)
	}
	return err
}

// clean undoes the changes of a controller, or lists them in a dry run.
func (c *cleaner) clean(ctx context.Context) error {
	if c.call.dryRun {
		return c.undo(ctx)
	}
	if err := c.stop(ctx); err != nil {
		return err
	}
	return c.undoAlone(ctx)
}

// A cleaner undoes the changes of a controller.
type cleaner struct {
	call   *cleanupCall
	notes  io.Writer
	client client.Client
	rest   *rest.Config

	looked bool // any objects were read
	result result
}

func newCleaner(cfg *rest.Config, notes io.Writer, f *cleanupCall) (*cleaner, error) {
	limiter, err := limit.New(limit.DefaultConfig())
	if err != nil {
		return nil, err
	}
	w, err := access.Client(limiter.Wrap(cfg, false), karpenter.AddToScheme, v1alpha1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return &cleaner{call: f, notes: notes, client: w, rest: cfg, result: result{DryRun: f.dryRun,
		Objects: []cleanedObject{}, BuyNothing: []string{}}}, nil
}

// stop scales the Deployment to zero. A Deployment that does not exist is not an error.
func (c *cleaner) stop(ctx context.Context) error {
	if c.call.deployment == "" {
		return nil
	}
	clients, err := kubernetes.NewForConfig(c.rest)
	if err != nil {
		return err
	}
	all := clients.AppsV1().Deployments(c.call.namespace)
	scale, err := all.GetScale(ctx, c.call.deployment, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		fmt.Fprintf(c.notes, "there is no Deployment %s/%s\n", c.call.namespace, c.call.deployment)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the scale of Deployment %s/%s: %w", c.call.namespace, c.call.deployment, err)
	}
	if scale.Spec.Replicas == 0 {
		return nil
	}
	next := &autoscalingv1.Scale{ObjectMeta: scale.ObjectMeta}
	if _, err := all.UpdateScale(ctx, c.call.deployment, next,
		metav1.UpdateOptions{FieldManager: cleanupOwner}); err != nil {
		return fmt.Errorf("scaling Deployment %s/%s to none: %w", c.call.namespace, c.call.deployment, err)
	}
	fmt.Fprintf(c.notes, "Deployment %s/%s is scaled to none\n", c.call.namespace, c.call.deployment)
	return nil
}

// undoAlone calls undo while holding the lease, so that no controller acts at the same time.
func (c *cleaner) undoAlone(ctx context.Context) error {
	var lease coordinationv1.Lease
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.call.namespace, Name: live.LeaseName}, &lease)
	if apierrors.IsNotFound(err) {
		fmt.Fprintf(c.notes, "there is no lease %s/%s: no controller has led there\n", c.call.namespace, live.LeaseName)
		return c.undo(ctx)
	}
	if err != nil {
		return fmt.Errorf("reading lease %s/%s: %w", c.call.namespace, live.LeaseName, err)
	}
	led, err := c.lead(ctx, c.undo)
	if led {
		return err
	}
	if err != nil {
		return err
	}
	holder := "somebody"
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	return cli.Invalid(fmt.Errorf("%s still leads in namespace %s after %v: nothing was done", holder, c.call.namespace,
		c.call.timeout),
		"stop the controller first, or name it by --deployment")
}

// lead waits for the lease and calls work while holding it. It reports whether it ever held the
// lease.
func (c *cleaner) lead(ctx context.Context, work func(context.Context) error) (led bool, err error) {
	clients, err := kubernetes.NewForConfig(c.rest)
	if err != nil {
		return false, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	klog.SetLogger(logr.Discard()) // the state of the lease is reported here, in one sentence
	d := live.DefaultConfig()
	done := make(chan error, 1)
	lock := &loggingLock{Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: c.call.namespace, Name: live.LeaseName}, Client: clients.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "cleanup_" + access.Identity()},
	}}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: d.LeaseDuration, RenewDeadline: d.RenewDeadline, RetryPeriod: d.RetryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { defer stop(); done <- work(ctx) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return false, err
	}
	elector.Run(ctx)
	if !lock.held {
		return false, nil
	}
	return true, <-done
}

// A loggingLock records whether it was ever held. It is not safe for concurrent use.
type loggingLock struct {
	resourcelock.Interface
	held bool
}

// Create creates the lease with this process as its holder.
func (l *loggingLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.wrote(l.Interface.Create(ctx, r))
}

// Update makes this process the holder of the lease, or releases it.
func (l *loggingLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.wrote(l.Interface.Update(ctx, r))
}

func (l *loggingLock) wrote(err error) error {
	l.held = l.held || err == nil
	return err
}
