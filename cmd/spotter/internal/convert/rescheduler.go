package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
)

// A deployment is a Deployment of any API version. Those of extensions and apps/v1beta1 also have
// spec.rollbackTo.
type deployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		appsv1.DeploymentSpec `json:",inline"`

		RollbackTo metav1.FieldsV1 `json:"rollbackTo"`
	} `json:"spec"`
	Status metav1.FieldsV1 `json:"status"`
}

// deployment determines which program a Deployment runs and reads its arguments.
func (r *reader) deployment(o *scenarios.RawObject) {
	var old deployment
	if err := o.Decode(&old); err != nil {
		r.fail(err)
		return
	}
	found := false
	for i := range old.Spec.Template.Spec.Containers {
		c := &old.Spec.Template.Spec.Containers[i]
		s := &source{file: o.File(), object: o}
		args := append(append([]string{}, c.Command...), c.Args...)
		switch program(c, args) {
		case "rescheduler":
			r.rescheduler(s, flagsOf(args))
			found = true
		case "karpetrack":
			r.readController(s, c, flagsOf(args))
			found = true
		case "agent":
			r.skip(o, "Deployment of SpotVortex")
			found = true
		}
	}
	if !found {
		r.skip(o, "Deployment of another program")
	}
}

// program returns the program that a container runs, determined by its image, command, flags and
// environment. It is empty for an unknown program.
func program(c *corev1.Container, args []string) string {
	all := c.Image + " " + strings.Join(args, " ")
	switch {
	case strings.Contains(all, "spot-rescheduler"), strings.Contains(all, "--spot-node-label"), strings.Contains(all, "--on-demand-node-label"):
		return "rescheduler"
	case strings.Contains(c.Image, "karpetrack"), strings.Contains(all, "--cloudspace-id"),
		slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return strings.HasPrefix(v.Name, "RACKSPACE_SPOT_") }):
		return "karpetrack"
	case strings.Contains(strings.ReplaceAll(c.Image, "-", ""), "spotvortex"):
		return "agent"
	}
	return ""
}

// flagsOf returns args without the name of the program.
func flagsOf(args []string) []string {
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = args[1:]
	}
	return args
}

// reschedulerFlags are the flags of the Rescheduler.
type reschedulerFlags struct {
	*pflag.FlagSet
	onDemand, spot       string
	drainDelay           time.Duration
	deleteNonReplicated  bool
	evictionTimeout      time.Duration
	gracefulTermination  time.Duration
	housekeepingInterval time.Duration
}

// elsewhere are the flags that configure the process and not its decisions.
var elsewhere = []string{
	"running-in-cluster", "namespace", "kube-api-content-type", "listen-address", "kubeconfig", "master", "version",
	"logtostderr", "alsologtostderr", "stderrthreshold", "vmodule", "log_dir", "log-dir", "log_backtrace_at", "log-backtrace-at",
	"log-flush-frequency", "leader-elect", "leader-elect-lease-duration", "leader-elect-renew-deadline",
	"leader-elect-retry-period", "leader-elect-resource-lock",
}

func newReschedulerFlags() *reschedulerFlags {
	f := &reschedulerFlags{FlagSet: pflag.NewFlagSet("rescheduler", pflag.ContinueOnError)}
	f.Usage = func() {}
	f.StringVar(&f.onDemand, "on-demand-node-label", "kubernetes.io/role=worker", "")
	f.StringVar(&f.spot, "spot-node-label", "kubernetes.io/role=spot-worker", "")
	f.DurationVar(&f.drainDelay, "node-drain-delay", 10*time.Minute, "")
	f.BoolVar(&f.deleteNonReplicated, "delete-non-replicated-pods", false, "")
	f.DurationVar(&f.evictionTimeout, "pod-eviction-timeout", 2*time.Minute, "")
	f.DurationVar(&f.gracefulTermination, "max-graceful-termination", 2*time.Minute, "")
	f.DurationVar(&f.housekeepingInterval, "housekeeping-interval", 10*time.Second, "")
	f.StringP("v", "v", "", "")
	for _, name := range elsewhere {
		f.String(name, "", "")
		switch name {
		case "running-in-cluster", "version", "logtostderr", "alsologtostderr", "leader-elect":
			f.Lookup(name).NoOptDefVal = "true"
		}
	}
	return f
}

// rescheduler creates a pool for each name from the flags in args.
func (r *reader) rescheduler(s *source, args []string) {
	f := newReschedulerFlags()
	if err := f.Parse(args); err != nil {
		r.fail(fmt.Errorf("%s: %w", at(s), whole(err, args)))
		return
	}
	if rest := f.Args(); len(rest) > 0 {
		r.fail(fmt.Errorf("%s: %q is not a flag", at(s), rest[0]))
		return
	}
	for _, l := range [...]struct{ kind, label string }{{"on demand", f.onDemand}, {"spot", f.spot}} {
		if name, _, _ := strings.Cut(l.label, "="); name == "" || strings.Count(l.label, "=") > 1 {
			r.fail(fmt.Errorf("%s: the %s node label is not correctly formatted: expected '<label_name>' or '<label_name>=<label_value>', but got %s",
				at(s), l.kind, l.label))
		}
	}
	for _, d := range [...]struct {
		flag string
		d    time.Duration
	}{
		{"node-drain-delay", f.drainDelay}, {"pod-eviction-timeout", f.evictionTimeout},
		{"max-graceful-termination", f.gracefulTermination}, {"housekeeping-interval", f.housekeepingInterval},
	} {
		if d.d < 0 {
			r.fail(fmt.Errorf("%s: --%s: %v is negative", at(s), d.flag, d.d))
		}
	}
	names := r.o.Pools
	if len(names) == 0 {
		names = []string{"default"}
		s.warn("",
			"the pool is called default: the Rescheduler looked at every node of the cluster and knew no pools; give --pools")
	}
	s.warnRescheduler(f)
	for i, name := range names {
		p := s.reschedulerPool(f, name)
		r.offer(s, p, i == 0, stated(f.FlagSet, [][2]string{
			{"on-demand-node-label", "on_demand_label"},
			{"spot-node-label", "spot_label"},
			{"node-drain-delay", "drain_delay"},
			{"delete-non-replicated-pods", "delete_non_replicated"},
		}))
		r.addAlike(s, p, i, names[0])
	}
}

// whole adds the value of the flag to an error about an unknown flag.
func whole(err error, args []string) error {
	var none *pflag.NotExistError
	if !errors.As(err, &none) {
		return err
	}
	for _, a := range args {
		if name, value, ok := strings.Cut(strings.TrimLeft(a, "-"), "="); ok && name == none.GetSpecifiedName() {
			return fmt.Errorf("%w, with value %q", err, value)
		}
	}
	return err
}

// at returns the location of a command line.
func at(s *source) string {
	if s.object == nil {
		return s.file
	}
	path := []string{"spec", "template", "spec", "containers"}
	return fmt.Sprintf("%s:%d: field %q", s.file, s.object.Line(path...), scenarios.JoinPath(path...))
}

func (s *source) reschedulerPool(f *reschedulerFlags, name string) *v1alpha1.CapacityPool {
	p := s.newPool(name, "rescheduler")
	p.Spec.Backend.AutoScalingGroups = &v1alpha1.AutoScalingGroupsBackend{
		DiscoveryTags: map[string]string{"k8s.io/cluster-autoscaler/enabled": "true"},
	}
	d := &p.Spec.Disruption
	disruptionBudget := intstr.FromInt32(1)
	d.Budget, d.ExpireAfter = &disruptionBudget, &metav1.Duration{}
	d.Cooldown = &metav1.Duration{Duration: f.drainDelay}
	return p
}

func (s *source) warnRescheduler(f *reschedulerFlags) {
	s.warn("",
		"backend.autoScalingGroups.discoveryTags are those by which the Cluster Autoscaler finds groups; take the tags of the groups of this pool")
	s.warn("",
		"the emptiest on-demand node is looked at by all that its pods need and their PodDisruptionBudgets, and one that cannot be "+
			"drained is left alone for a while, where the Rescheduler tried it for ever and no other")
	for _, x := range [...][2]string{
		{"pod-eviction-timeout", "a drain has the time that the driver gives it, and is undone after that"},
		{"max-graceful-termination", "a pod has its own terminationGracePeriodSeconds"},
		{"housekeeping-interval", "decisions are taken every 10 minutes, and at once when a node or a pod changes"},
	} {
		if f.Changed(x[0]) {
			s.warn("", "--%s=%s is dropped: %s", x[0], f.Lookup(x[0]).Value, x[1])
		}
	}
	for _, name := range append([]string{"v"}, elsewhere...) {
		if f.Changed(name) {
			s.warn("", "--%s=%s is dropped: it is set where spotter run is started", name, f.Lookup(name).Value)
		}
	}
	for _, x := range [...][2]string{{"on-demand-node-label", f.onDemand}, {"spot-node-label", f.spot}} {
		if !f.Changed(x[0]) {
			s.warn("",
				"--%s is not given: nodes are distinguished by their capacity type, not by the label %s, which was its default", x[0], x[1])
		}
	}
	s.shadow("the Rescheduler")
}

// words splits a command line as a shell does. It supports quotes but no other syntax.
func words(line string) []string {
	var all []string
	var word strings.Builder
	quote, inside := rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inside = c, true
		case quote == 0 && strings.ContainsRune(" \t\n\\", c):
			if inside {
				all = append(all, word.String())
			}
			word.Reset()
			inside = false
		default:
			word.WriteRune(c)
			inside = true
		}
	}
	if inside {
		all = append(all, word.String())
	}
	return flagsOf(all)
}
