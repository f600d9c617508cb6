// Package status implements the command that reports whether a controller runs in a cluster.
package status

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A statusCall is the values of the flags of the command status.
type statusCall struct {
	cluster   access.Cluster
	namespace string
	wait      time.Duration
	form      cli.Form
}

// Command returns the command status.
func Command(p *cli.Program) *cobra.Command {
	f := statusCall{}
	c := &cobra.Command{
		Use:   "status",
		Short: "Show whether a controller runs in a cluster, and the state of its pools",
		Long: "status shows the replica that leads, the CapacityPools with their state, and plans that\n" +
			"wait for approval with the command that approves them. It changes nothing. It exits with 1 where no replica leads or a pool has changes that no\n" +
			"controller has read, and with 2 where the definitions are missing. A controller without\n" +
			"leader election is recognized by a decision in the last twenty minutes.",
		Example: "  spotter status --namespace spotter\n  spotter status --namespace spotter --wait 2m",
		Args:    cli.Arguments(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return run(c.Context(), p, &f) },
	}
	flags := c.Flags()
	f.cluster.Register(flags)
	f.form.Register(c)
	access.RegisterNamespace(flags, &f.namespace)
	flags.DurationVar(&f.wait, "wait", 0, "wait up to `TIME` until all is well")
	f.cluster.Complete(c)
	return c
}

// statusEvery is the polling interval of --wait.
const statusEvery = time.Second

func run(ctx context.Context, p *cli.Program, f *statusCall) error {
	if f.wait < 0 {
		return cli.Invalid(fmt.Errorf("--wait: %v is negative", f.wait), "give it as 2m")
	}
	if f.namespace == "" {
		f.namespace = access.OwnNamespace()
	}
	cfg, err := f.cluster.Config(p.Version)
	if err != nil {
		return err
	}
	c, err := access.Client(cfg, v1alpha1.AddToScheme)
	if err != nil {
		return err
	}
	for end := time.Now().Add(f.wait); ; {
		s, err := look(ctx, c, f.namespace)
		if err != nil {
			return err
		}
		if len(s.wrong) == 0 || !time.Now().Before(end) {
			if err := p.Print(&f.form, s.object(), func(w io.Writer, _ bool) error { return s.write(w) }); err != nil {
				return err
			}
			return s.check()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(statusEvery):
		}
	}
}

// An installation is the externally visible state of a controller.
type installation struct {
	leader string
	alone  time.Duration // time since the last decision of a controller without leader election; 0 if there is no such controller
	pools  []v1alpha1.CapacityPool
	wrong  []string

	// plans are pending or approved, in pools of mode approve.
	plans []v1alpha1.SpotPlan

	// undefined is the error of a server without the custom resource definitions.
	undefined error
}

// look reads the current state of a controller.
func look(ctx context.Context, c client.Reader, namespace string) (*installation, error) {
	s := &installation{}
	var lease coordinationv1.Lease
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: live.LeaseName}, &lease)
	switch {
	case apierrors.IsNotFound(err):
		s.wrong = append(s.wrong, fmt.Sprintf("there is no lease %s/%s: no controller has led there", namespace,
			live.LeaseName))
	case err != nil:
		return nil, fmt.Errorf("reading lease %s/%s: %w", namespace, live.LeaseName, err)
	default:
		s.leads(&lease.Spec, time.Now())
	}
	if s.leader == "" {
		if err := s.decides(ctx, c, namespace, &lease.Spec); err != nil {
			return nil, err
		}
	}
	var list v1alpha1.CapacityPoolList
	err = c.List(ctx, &list)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		s.undefined = err
		s.wrong = append(s.wrong, "the API server does not know CapacityPools: the definitions are not installed")
	case err != nil:
		return nil, fmt.Errorf("listing CapacityPools: %w", err)
	}
	s.pools = list.Items
	for i := range s.pools {
		if of := s.pools[i].Status.Controller; of != "" && of != namespace {
			s.wrong = append(s.wrong, fmt.Sprintf("CapacityPool %s is claimed by the release in namespace %s",
				s.pools[i].Name, of))
		}
		if p := &s.pools[i]; p.Status.ObservedGeneration != p.Generation {
			s.wrong = append(s.wrong, fmt.Sprintf("CapacityPool %s has changes that no controller has read", p.Name))
		}
	}
	return s, s.readPlans(ctx, c)
}

// readPlans reads the SpotPlans of the pools in mode approve.
func (s *installation) readPlans(ctx context.Context, c client.Reader) error {
	for i := range s.pools {
		if s.pools[i].Status.Mode != v1alpha1.ModeApprove {
			continue
		}
		var plan v1alpha1.SpotPlan
		err := c.Get(ctx, client.ObjectKey{Name: s.pools[i].Name}, &plan)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("reading SpotPlan %s: %w", s.pools[i].Name, err)
		}
		s.plans = append(s.plans, plan)
	}
	return nil
}

// writePlan writes a plan, with the command that approves it.
func writePlan(w io.Writer, p *v1alpha1.SpotPlan, now time.Time) {
	state := p.StateAt(now)
	if len(p.Status.Changes) == 0 || state == v1alpha1.PlanExpired {
		fmt.Fprintf(w, "%s: no plan waits for approval\n", p.Name)
		return
	}
	says := "waits for approval"
	switch state {
	case v1alpha1.PlanApproved:
		says = "is approved"
	case v1alpha1.PlanDigestMismatch:
		says = "waits for approval: the digest that is approved is that of another plan"
	}
	fmt.Fprintf(w, "%s: this plan %s, until %s\n", p.Name, says, p.Status.Expires.UTC().Format(time.RFC3339))
	for _, c := range p.Status.Changes {
		if c.SavingPerHour != "" {
			c.Change += ", saves " + c.SavingPerHour + " an hour"
		}
		fmt.Fprintf(w, "  %s\n", c.Change)
	}
	if state != v1alpha1.PlanApproved {
		fmt.Fprintf(w, "  kubectl patch spotplan %s --type merge -p '{\"spec\":{\"approved\":true,\"digest\":%q}}'\n",
			p.Name, p.Sum())
	}
}

// leads records the holder of a lease that has not expired.
func (s *installation) leads(x *coordinationv1.LeaseSpec, now time.Time) {
	if x.HolderIdentity == nil || *x.HolderIdentity == "" {
		s.wrong = append(s.wrong, "no replica leads: the lease was given up")
		return
	}
	if x.RenewTime == nil || x.LeaseDurationSeconds == nil {
		s.wrong = append(s.wrong, "no replica leads: the lease has no time")
		return
	}
	age, lasts := now.Sub(x.RenewTime.Time), time.Duration(*x.LeaseDurationSeconds)*time.Second
	if age > lasts {
		s.wrong = append(s.wrong, fmt.Sprintf("no replica leads: %s has not renewed its lease for %v", *x.HolderIdentity,
			age.Round(time.Second)))
		return
	}
	s.leader = *x.HolderIdentity
}

// aloneMax is the maximum age of a decision that shows that a controller without leader election
// runs. By default it decides at least every ten minutes.
const aloneMax = 20 * time.Minute

// decides records that a controller decides without a lease: one without leader election writes its
// memory at every step. Memory that was written while the lease was held belongs to the holder.
func (s *installation) decides(ctx context.Context, c client.Reader, namespace string,
	lease *coordinationv1.LeaseSpec) error {
	var memory corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: live.MemoryName}, &memory)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil // the error of the lease has been reported
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, live.MemoryName, err)
	}
	var last, held time.Time
	for _, m := range memory.ManagedFields {
		if m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	if lease.RenewTime != nil && lease.LeaseDurationSeconds != nil {
		held = lease.RenewTime.Add(time.Duration(*lease.LeaseDurationSeconds) * time.Second)
	}
	if age := time.Since(last); last.After(held) && age <= aloneMax {
		s.alone, s.wrong = max(age, time.Second), nil
	}
	return nil
}

// check returns an error if the installation has a problem.
func (s *installation) check() error {
	if s.undefined != nil {
		return s.undefined
	}
	if len(s.wrong) > 0 {
		return cli.ErrCheck
	}
	return nil
}

// writePools writes a table of the pools, and below it each distinct remark that the table has no
// room for.
func (s *installation) writePools(w io.Writer) error {
	var remarks []string
	pools := map[string][]string{} // by remark
	remark := func(pool, text string) {
		if pools[text] == nil {
			remarks = append(remarks, text)
		}
		pools[text] = append(pools[text], pool)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "POOL\tMODE\tREADY\tSPOT\tSAVES/H\tLOSS BUDGET\tREASON")
	for i := range s.pools {
		p := &s.pools[i]
		ready, why := "Unknown", ""
		if c := meta.FindStatusCondition(p.Status.Conditions, live.ConditionReady); c != nil {
			ready = string(c.Status)
			if c.Status != metav1.ConditionTrue {
				why = c.Reason
				remark(p.Name, c.Reason+": "+strings.Join(strings.Fields(c.Message), " "))
			}
		}
		loss, until, _ := strings.Cut(p.Status.LossBudget, ", ")
		if until != "" {
			remark(p.Name, "the loss budget is "+p.Status.LossBudget)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, figures.Plain(string(p.Status.Mode)), ready,
			figures.Plain(p.Status.SpotShare), figures.Plain(p.Status.SavingsPerHour), figures.Plain(loss), figures.Plain(why))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, text := range remarks {
		fmt.Fprintf(w, "%s: %s\n", strings.Join(pools[text], ", "), figures.Plain(text))
	}
	return nil
}

// write writes the state as text.
func (s *installation) write(w io.Writer) error {
	if s.leader != "" {
		fmt.Fprintf(w, "%s leads\n", figures.Plain(s.leader))
	}
	if s.alone > 0 {
		fmt.Fprintf(w, "a controller without leader election decided %v ago\n", s.alone.Round(time.Second))
	}
	if len(s.pools) == 0 {
		fmt.Fprintln(w, "there is no CapacityPool: no decisions are made")
	} else if err := s.writePools(w); err != nil {
		return err
	}
	for i := range s.plans {
		writePlan(w, &s.plans[i], time.Now())
	}
	for _, x := range s.wrong {
		fmt.Fprintln(w, figures.Plain(x))
	}
	return nil
}

// A poolStatus is a pool in machine-readable form.
type poolStatus struct {
	Name   string                      `json:"name"`
	Status v1alpha1.CapacityPoolStatus `json:"status"`
}

// A planStatus is a SpotPlan in machine-readable form.
type planStatus struct {
	Name   string                  `json:"name"`
	Status v1alpha1.SpotPlanStatus `json:"status"`
}

// object returns the installation in machine-readable form.
func (s *installation) object() any {
	pools := []poolStatus{}
	for i := range s.pools {
		pools = append(pools, poolStatus{s.pools[i].Name, s.pools[i].Status})
	}
	var plans []planStatus
	for i := range s.plans {
		plans = append(plans, planStatus{s.plans[i].Name, s.plans[i].Status})
	}
	return struct {
		Leader   string       `json:"leader,omitempty"`
		DecidedS float64      `json:"decided_s_ago,omitempty"`
		Pools    []poolStatus `json:"pools"`
		Plans    []planStatus `json:"plans,omitempty"`
		Wrong    []string     `json:"wrong"`
	}{s.leader, s.alone.Seconds(), pools, plans, append([]string{}, s.wrong...)}
}
