package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
)

// A karpetrackSpec is a SpotNodePool, karpetrack.io/v1alpha1.
type karpetrackSpec struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Categories []string `json:"categories"`
		Regions    []string `json:"regions"`
		MaxPrice   string   `json:"maxPrice"`
		Limits     struct {
			CPU     *resource.Quantity `json:"cpu"`
			Memory  *resource.Quantity `json:"memory"`
			Storage *resource.Quantity `json:"ephemeralStorage"`
		} `json:"limits"`
		Disruption struct {
			Policy      string `json:"consolidationPolicy"`
			After       string `json:"consolidateAfter"`
			ExpireAfter string `json:"expireAfter"`
		} `json:"disruption"`
		Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
		Labels       map[string]string                `json:"labels"`
		Taints       []corev1.Taint                   `json:"taints"`
	} `json:"spec"`

	// Status is what was last provisioned. It is ignored.
	Status metav1.FieldsV1 `json:"status"`
}

// A karpetrackPool is a SpotNodePool that is converted after the Deployment of the controller is
// read.
type karpetrackPool struct {
	*source
	old karpetrackSpec
}

// A karpetrackController is the settings for all pools in the flags and the environment of
// Karpetrack's controller.
type karpetrackController struct {
	cloudspace, org, secret string
	threshold               float64
	emptyGrace              time.Duration
	consolidation           bool

	// file is the file of its Deployment, empty without one.
	file       string
	parameters []parameter
	warnings   []Warning
}

func (r *reader) readKarpetrack(o *scenarios.RawObject) {
	p := karpetrackPool{source: &source{file: o.File(), object: o}}
	if err := o.Decode(&p.old); err != nil {
		r.fail(err)
		return
	}
	r.karpetrack = append(r.karpetrack, p)
}

// karpetrackFlags returns the flags of the controller, and pairs of a flag that Spotter does not
// replace and the reason.
func karpetrackFlags(c *karpetrackController) (*pflag.FlagSet, [][2]string) {
	f := pflag.NewFlagSet("karpetrack", pflag.ContinueOnError)
	f.Usage = func() {}
	f.StringVar(&c.cloudspace, "cloudspace-id", c.cloudspace, "")
	f.StringVar(&c.org, "org", c.org, "")
	f.Float64Var(&c.threshold, "optimization-threshold", 0.20, "")
	f.BoolVar(&c.consolidation, "consolidation-enabled", true, "")
	f.DurationVar(&c.emptyGrace, "empty-node-grace-period", 5*time.Minute, "")
	f.String("refresh-token", "", "")
	f.String("metrics-bind-address", ":8080", "")
	f.String("health-probe-bind-address", ":8081", "")
	f.Bool("leader-elect", false, "")
	f.Bool("mock-mode", false, "")
	f.Duration("pricing-refresh-interval", 30*time.Second, "")
	f.Duration("batch-window", 10*time.Second, "")
	f.Bool("periodic-optimization-enabled", true, "")
	f.Duration("periodic-optimization-interval", 30*time.Minute, "")
	f.Duration("periodic-removal-delay", 20*time.Minute, "")
	for _, name := range []string{"zap-devel", "zap-encoder", "zap-log-level", "zap-stacktrace-level",
		"zap-time-encoding", "kubeconfig"} {
		f.String(name, "", "")
		f.Lookup(name).NoOptDefVal = "true"
	}
	return f, [][2]string{
		{"refresh-token", "the token belongs into the secret that backend.rackspace.credentialsSecretRef names"},
		{"metrics-bind-address", "it is set where spotter run is started"},
		{"health-probe-bind-address", "it is set where spotter run is started"},
		{"leader-elect", "it is set where spotter run is started"},
		{"mock-mode", "use spotter sim to try a pool without an account"},
		{"pricing-refresh-interval", "prices are read before each decision"},
		{"zap-devel", "it is set where spotter run is started"},
		{"zap-encoder", "it is set where spotter run is started"},
		{"zap-log-level", "it is set where spotter run is started"},
		{"zap-stacktrace-level", "it is set where spotter run is started"},
		{"zap-time-encoding", "it is set where spotter run is started"},
		{"kubeconfig", "it is set where spotter run is started"},
	}
}

// readController reads the settings of the controller's container.
func (r *reader) readController(s *source, c *corev1.Container, args []string) {
	k := &r.controller
	for _, e := range c.Env {
		switch e.Name {
		case "RACKSPACE_SPOT_CLOUDSPACE_ID":
			k.cloudspace = e.Value
		case "RACKSPACE_SPOT_ORG":
			k.org = e.Value
		case "RACKSPACE_SPOT_REFRESH_TOKEN":
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				k.secret = cmp.Or(s.object.Scalar("metadata", "namespace"), "default") + "/" + e.ValueFrom.SecretKeyRef.Name
			}
		}
	}
	flags, dropped := karpetrackFlags(k)
	if err := flags.Parse(args); err != nil {
		s.fail("spec.template.spec.containers", "the arguments of container %s: %v", c.Name, whole(err, args))
		r.fail(s.errs...)
		return
	}
	for _, d := range dropped {
		if flags.Changed(d[0]) {
			s.warn("", "--%s is dropped: %s", d[0], d[1])
		}
	}
	k.parameters = stated(flags, [][2]string{
		{"batch-window", "batch_window"},
		{"periodic-optimization-enabled", "periodic"},
		{"periodic-optimization-interval", "periodic_interval"},
		{"periodic-removal-delay", "removal_delay"},
	})
	k.file, k.warnings = s.file, s.warnings
}

// finishKarpetrack creates the pools after all files are read.
func (r *reader) finishKarpetrack() {
	if r.controller.file == "" {
		karpetrackFlags(&r.controller) // sets the defaults
	} else if len(r.karpetrack) == 0 {
		r.fail(fmt.Errorf("%s: %w: Karpetrack's controller has no pool of its own; give the SpotNodePools with it",
			r.controller.file, ErrNothing))
	}
	for i := range r.karpetrack {
		r.finishKarpetrackPool(&r.karpetrack[i])
	}
}

func (r *reader) finishKarpetrackPool(k *karpetrackPool) {
	s, spec := k.source, &k.old.Spec
	if k.old.Name == "" {
		s.fail("metadata.name", "must be set")
	}
	p := s.newPool(k.old.Name, "karpetrack")
	p.ObjectMeta = named(&k.old.ObjectMeta)
	r.rackspace(s, p)
	m := &p.Spec.Markets
	m.Regions = spec.Regions
	s.categories(m, spec.Categories)
	s.maxPrice(m, spec.MaxPrice)
	one, no := 1.0, false
	p.Spec.Capacity = v1alpha1.Capacity{SpotShare: &v1alpha1.SpotShare{Min: &one}, OnDemandFallback: &no}
	if l := &spec.Limits; l.CPU != nil || l.Memory != nil {
		p.Spec.Capacity.Limits = &v1alpha1.Limits{CPU: l.CPU, Memory: l.Memory}
		s.warn("spec.limits",
			"a limit was looked at before a batch of nodes, which could go beyond it; from now on no node does")
	}
	p.Spec.Template.Labels = spec.Labels
	for _, t := range spec.Taints {
		t.TimeAdded = nil
		p.Spec.Template.Taints = append(p.Spec.Template.Taints, t)
	}
	for i := range spec.Requirements {
		s.requirement(p, &spec.Requirements[i], "spec.requirements"+scenarios.Index(i))
	}
	r.karpetrackDisruption(s, p, &k.old)
	s.drop([2]string{"spec.limits.ephemeralStorage", "capacity.limits knows cpu, memory and gpu"})
	s.warn("",
		"pods are evicted from a node that goes, within their PodDisruptionBudgets, where Karpetrack cordoned it and waited for "+
			"them to leave by themselves")
	r.offer(s, p, true, r.controller.parameters)
	s.shadow("Karpetrack")
	s.warnings = append(s.warnings, r.controller.warnings...)
	r.add(s, p)
}

// unknown is the placeholder for values that neither the old configuration nor a flag contains.
const unknown = "replace-me"

// rackspace sets the backend. Flags take precedence over the controller's Deployment.
func (r *reader) rackspace(s *source, p *v1alpha1.CapacityPool) {
	b := &v1alpha1.RackspaceBackend{
		Cloudspace: cmp.Or(r.o.Cloudspace, r.controller.cloudspace, unknown),
		Org:        cmp.Or(r.o.Org, r.controller.org, unknown),
	}
	secret := cmp.Or(r.o.Secret, r.controller.secret, unknown)
	if namespace, name, ok := strings.Cut(secret, "/"); ok {
		b.CredentialsSecretRef = corev1.SecretReference{Namespace: namespace, Name: name}
	} else {
		b.CredentialsSecretRef = corev1.SecretReference{Name: secret}
	}
	for _, x := range [...]struct{ field, value, flag string }{
		{"cloudspace", b.Cloudspace, "--cloudspace"}, {"org", b.Org, "--org"},
		{"credentialsSecretRef", b.CredentialsSecretRef.Name, "--credentials-secret"},
	} {
		if x.value == unknown {
			s.warn("",
				"spec.backend.rackspace.%s is %q: a SpotNodePool does not say it; give %s, or the Deployment of the controller as one more -f",
				x.field, unknown, x.flag)
		}
	}
	p.Spec.Backend.Rackspace = b
}

// categories converts categories, which may be short names or the names of the price feed.
func (s *source) categories(m *v1alpha1.Markets, old []string) {
	for i, c := range old {
		at := "spec.categories" + scenarios.Index(i)
		short := v1alpha1.Category(c)
		if !slices.Contains([]string{"gp", "ch", "mh", "bm", "gpu"}, short) {
			s.fail(at, "%q is not gp, ch, mh, bm or gpu", c)
			continue
		}
		if short != c {
			s.warn(at, "%s becomes %s", c, short)
		}
		m.Categories = append(m.Categories, short)
	}
	if len(old) == 0 {
		m.Categories = []string{"gp", "ch", "mh", "bm"}
		s.warn("",
			"markets.categories are all but gpu, which is what no category meant; a CapacityPool without any leaves out bare metal too")
	}
}

func (s *source) maxPrice(m *v1alpha1.Markets, text string) {
	if text == "" {
		return
	}
	price, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	switch {
	case err != nil || !(price >= 0) || price > 1e6:
		s.fail("spec.maxPrice", "%q is not a price in $ per hour", text)
	case price > 0:
		m.MaxPrice = &price
		s.warn("spec.maxPrice",
			"%s was held against the market price when a node was bought and not when it was replaced; it holds for every node that is bought from now on", text)
	}
}

// requirement converts a requirement on the nodes of a pool.
func (s *source) requirement(p *v1alpha1.CapacityPool, q *corev1.NodeSelectorRequirement, at string) {
	m := &p.Spec.Markets
	to := map[string]*[]string{
		"kubernetes.io/arch": &m.Architectures, "node.kubernetes.io/instance-type": &m.InstanceTypes,
		"topology.kubernetes.io/zone": &m.Zones, "topology.kubernetes.io/region": &m.Regions,
	}[q.Key]
	in := q.Operator == corev1.NodeSelectorOpIn
	switch {
	case q.Key == "":
		s.fail(at+".key", "must be set")
	case in && len(q.Values) == 0:
		s.fail(at+".values", "must not be empty for In")
	case in && to != nil && len(*to) == 0:
		*to = q.Values
	case in && to != nil:
		*to = slices.DeleteFunc(slices.Clone(*to), func(v string) bool { return !slices.Contains(q.Values, v) })
		if len(*to) == 0 {
			s.fail(at+".values", "%q and the pool's other fields leave no %s", q.Values, q.Key)
		}
	case in && len(q.Values) == 1:
		if v, ok := p.Spec.Template.Labels[q.Key]; ok && v != q.Values[0] {
			s.fail(at+".values", "%q, but spec.labels say %q", q.Values[0], v)
			return
		}
		labels := map[string]string{q.Key: q.Values[0]}
		for k, v := range p.Spec.Template.Labels {
			labels[k] = v
		}
		p.Spec.Template.Labels = labels
		s.warn(at, "%s In [%s] kept pods away whose node selector has another value; it becomes a label of the nodes",
			q.Key, q.Values[0])
	default:
		s.warn(at,
			"%s %s %v is dropped: a CapacityPool restricts architectures, instance types, zones and regions by lists, and has one "+
				"value for any other label; Karpetrack read every operator as In", q.Key, q.Operator, q.Values)
	}
}

func (r *reader) karpetrackDisruption(s *source, p *v1alpha1.CapacityPool, old *karpetrackSpec) {
	d, from := &p.Spec.Disruption, &old.Spec.Disruption
	switch from.Policy {
	case "", "WhenEmpty":
		d.ConsolidationPolicy = v1alpha1.ConsolidateWhenEmpty
	case "WhenUnderutilized":
		d.ConsolidationPolicy = v1alpha1.ConsolidateWhenEmptyOrUnderutilized
	default:
		s.fail("spec.disruption.consolidationPolicy", "%q is neither WhenEmpty nor WhenUnderutilized", from.Policy)
	}
	if !r.controller.consolidation {
		d.ConsolidationPolicy = v1alpha1.ConsolidateNever
	}
	after := metav1.Duration{Duration: r.controller.emptyGrace}
	if from.After != "" {
		after = s.duration("spec.disruption.consolidateAfter", from.After)
		s.warn("spec.disruption.consolidateAfter",
			"%s was taken and never used, the controller's --empty-node-grace-period was; it is in force from now on", from.After)
	}
	expire := metav1.Duration{} // 0 means never
	if from.ExpireAfter != "" {
		expire = s.duration("spec.disruption.expireAfter", from.ExpireAfter)
		s.warn("spec.disruption.expireAfter", "%s was taken and never used; nodes are replaced at that age from now on",
			from.ExpireAfter)
	}
	d.ConsolidateAfter, d.ExpireAfter = &after, &expire
	threshold := r.controller.threshold
	d.SavingsThreshold = &threshold
	s.warn("", "disruption.budget is 10%% of the nodes at once, where Karpetrack had no such limit")
}
