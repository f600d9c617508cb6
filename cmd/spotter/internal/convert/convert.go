// Package convert converts the configuration of five older programs to CapacityPools and
// GPUBudgets: LeftoverNodePool, the SpotNodePool of Karpetrack, GPUWorkloadBudget, the config.yaml
// and runtime.json of the SpotVortex agent, and the flags of the K8s Spot Rescheduler.
//
// A setting that cannot be carried over, or that changes its meaning, results in a warning and in a
// comment above the object that it concerns. A setting that is not understood is an error: a
// silently dropped field would be a request that is never met.
package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
)

// ErrNothing means that the input contains nothing that can be converted.
var ErrNothing = errors.New("there is nothing to convert")

// Options are settings that a CapacityPool requires and that old configuration does not contain.
// For an empty field a placeholder is used, with a warning.
type Options struct {
	// NodeClass is the node class of pools with the backend Karpenter.
	NodeClass string

	// Cloudspace and Org are the cloudspace and organization of Rackspace pools. Secret is the
	// secret with their refresh token, as NAME or NAMESPACE/NAME.
	Cloudspace, Org, Secret string

	// Pools are the names of the pools. They are needed for programs that found their pools in the
	// cluster.
	Pools []string

	// ReadBuckets returns, as JSON, the bounds of workload features from the file that a runtime
	// file names in feature_buckets.source. If nil, no such file is read.
	ReadBuckets func(runtimeFile, source string) ([]byte, error)

	// Check returns an error if the policy in a manifest does not accept its parameters. If nil,
	// policies are not checked.
	Check func(spec string) error
}

// An Input is a file to convert.
type Input struct {
	// Name is the name of the file in errors and warnings.
	Name string
	Data []byte
}

// A Warning describes a setting that changes its meaning or is left out.
type Warning struct {
	File string
	Line int

	// Field is the path of the old field. It is empty if the warning concerns the whole object.
	Field string
	Text  string
}

// String returns the warning on one line.
func (w Warning) String() string {
	at := w.File
	if w.Line > 0 {
		at = fmt.Sprintf("%s:%d", w.File, w.Line)
	}
	if w.Field == "" {
		return fmt.Sprintf("%s: %s", at, w.Text)
	}
	return fmt.Sprintf("%s: %s: %s", at, w.Field, w.Text)
}

// A Converted is a new object with its warnings.
type Converted struct {
	// Object is a *v1alpha1.CapacityPool or a *v1alpha1.GPUBudget.
	Object   any
	Warnings []Warning
}

// A Result is the result of a conversion.
type Result struct {
	Objects []Converted

	// Warnings are the warnings that concern no object of the result.
	Warnings []Warning
}

// All returns every distinct warning, in the order in which [Result.WriteTo] writes them.
func (r *Result) All() []Warning {
	all := slices.Clone(r.Warnings)
	for i := range r.Objects {
		for _, w := range r.Objects[i].Warnings {
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return all
}

// Convert converts inputs in their order, and the flags of the Rescheduler as a command line, which
// may be empty. It returns all errors joined.
func Convert(inputs []Input, flags string, o Options) (*Result, error) {
	r := &reader{o: o}
	for _, in := range inputs {
		objects, err := scenarios.RawObjects(in.Name, in.Data)
		if err != nil {
			r.errs = append(r.errs, err)
			continue
		}
		if len(objects) == 0 {
			r.errs = append(r.errs, fmt.Errorf("%s: %w: it holds no object", in.Name, ErrNothing))
		}
		for i := range objects {
			r.read(&objects[i], in.Data)
		}
	}
	r.finishAgent()
	r.finishKarpetrack()
	if strings.TrimSpace(flags) != "" {
		r.rescheduler(&source{file: "--from-flags"}, words(flags))
	}
	r.check()
	r.warnSkipped()
	if len(r.errs) > 0 {
		return nil, scenarios.InOrder(r.errs)
	}
	if len(r.result.Objects) == 0 {
		var why []error
		for _, w := range r.result.Warnings {
			why = append(why, errors.New(w.String()))
		}
		return nil, errors.Join(append([]error{fmt.Errorf("%w: what is read are %s", ErrNothing, knownKinds)}, why...)...)
	}
	return &r.result, nil
}

// A reader collects the objects of the inputs.
type reader struct {
	o      Options
	result Result
	errs   []error

	// The two files of the agent are converted together, and the pools of Karpetrack require the
	// configuration of its controller.
	agent      *agent
	runtime    *agentRuntime
	karpetrack []karpetrackPool
	controller karpetrackController

	skipped []skipped // in the order of the files
}

// read converts one object, or keeps it until all are read.
func (r *reader) read(o *scenarios.RawObject, data []byte) {
	kind := o.Scalar("kind")
	if kind == "" {
		if !r.agentFile(o, data) {
			r.fail(o.Problem([]string{"kind"},
				"there is no kind, and it is neither a config.yaml nor a runtime.json of SpotVortex"))
		}
		return
	}
	group, _, _ := strings.Cut(o.Scalar("apiVersion"), "/")
	switch k, known := converters[kind]; {
	case known && slices.Contains(k.groups, group):
		k.read(r, o)
	case known && kind != "Deployment":
		r.fail(o.Problem([]string{"apiVersion"}, "%q of a %s, want %s/…", o.Scalar("apiVersion"), kind, k.groups[0]))
	case kind == "ConfigMap":
		r.configMap(o)
	case kind == "EC2NodeClass", kind == "SpotNode":
		s := source{file: o.File(), object: o}
		s.warn("", "the %s %q is dropped: %s", kind, o.Scalar("metadata", "name"), map[string]string{
			"EC2NodeClass": "it stays as it is, and pools name it",
			"SpotNode":     "it is state and not configuration",
		}[kind])
		r.result.Warnings = append(r.result.Warnings, s.warnings...)
	case slices.Contains(oldGroups(), group):
		r.fail(o.Problem([]string{"kind"}, "%q cannot be converted; known are %s", kind, knownKinds))
	default:
		r.skip(o, kind)
	}
}

// A converter reads objects of one kind, from any of several API groups.
type converter struct {
	groups []string
	read   func(*reader, *scenarios.RawObject)
}

var converters = map[string]converter{
	"LeftoverNodePool":  {[]string{"gpu.devplatforms.io"}, (*reader).leftover},
	"SpotNodePool":      {[]string{"karpetrack.io"}, (*reader).readKarpetrack},
	"GPUWorkloadBudget": {[]string{"budget.zxuhan.dev"}, (*reader).gpuBudget},
	"Deployment":        {[]string{"apps", "extensions"}, (*reader).deployment},
}

// oldGroups returns the API groups of the older programs. An unknown kind in one of them is an
// error.
func oldGroups() (groups []string) {
	for kind, c := range converters {
		if kind != "Deployment" {
			groups = append(groups, c.groups...)
		}
	}
	return groups
}

const knownKinds = "LeftoverNodePool, SpotNodePool, GPUWorkloadBudget, Deployment (of the Rescheduler or of Karpetrack), " +
	"ConfigMap (of SpotVortex), and SpotVortex's config.yaml and runtime.json, which have no kind"

// skip leaves out an object that is not old configuration. Charts and folders contain such objects.
func (r *reader) skip(o *scenarios.RawObject, what string) {
	if len(r.skipped) == 0 || r.skipped[len(r.skipped)-1].file != o.File() {
		r.skipped = append(r.skipped, skipped{o.File(), map[string]int{}})
	}
	r.skipped[len(r.skipped)-1].kinds[what]++
}

// A skipped is the number of objects that were left out of a file, by kind.
type skipped struct {
	file  string
	kinds map[string]int
}

// warnSkipped adds a warning for each file with objects that were left out.
func (r *reader) warnSkipped() {
	for _, x := range r.skipped {
		r.result.Warnings = append(r.result.Warnings, Warning{File: x.file, Text: scenarios.SkippedLine(x.kinds)})
	}
}

func (r *reader) fail(errs ...error) {
	for _, err := range errs {
		if err != nil {
			r.errs = append(r.errs, err)
		}
	}
}

// add adds a new object with the errors and warnings of its source.
func (r *reader) add(s *source, object any) {
	r.fail(s.errs...)
	r.result.Objects = append(r.result.Objects, Converted{object, s.warnings})
}

// addAlike adds the i-th of several objects from one source. The warnings about all of them are
// attached to the first.
func (r *reader) addAlike(s *source, object any, i int, first string) {
	if i == 0 {
		r.add(s, object)
		return
	}
	like := source{file: s.file}
	like.warnings = []Warning{{File: s.file, Text: "what is said of CapacityPool " + first + " holds for " +
		name(object) + " too"}}
	r.add(&like, object)
}

// check validates the new objects as the API server would, and their policies.
func (r *reader) check() {
	if len(r.errs) > 0 {
		return
	}
	for i := range r.result.Objects {
		c := &r.result.Objects[i]
		var faults field.ErrorList
		switch v := c.Object.(type) {
		case *v1alpha1.CapacityPool:
			full := v.DeepCopy()
			full.Default()
			faults = full.Validate()
			if err := r.policy(full.Spec.Policy); err != nil {
				r.fail(fmt.Errorf("%s: %w", full.Name, err))
			}
		case *v1alpha1.GPUBudget:
			full := v.DeepCopy()
			full.Default()
			faults = full.Validate()
		}
		for _, e := range faults {
			r.fail(fmt.Errorf("the new %s: %w", name(c.Object), e))
		}
	}
}

func (r *reader) policy(p *v1alpha1.PolicyRef) error {
	if p == nil || r.o.Check == nil {
		return nil
	}
	spec := p.Name
	for _, k := range sorted(p.Parameters) {
		spec += ":" + k + "=" + p.Parameters[k]
	}
	return r.o.Check(spec)
}

// A source is the origin of a new object, with the warnings and errors found so far.
type source struct {
	file   string
	object *scenarios.RawObject // nil for a command line

	warnings []Warning
	errs     []error
}

// warn records a warning about the field at a path such as "spec.families", or about the whole
// object if path is empty.
func (s *source) warn(path, format string, args ...any) {
	w := Warning{File: s.file, Field: path, Text: fmt.Sprintf(format, args...)}
	if s.object != nil {
		w.Line = s.object.Line(split(path)...)
	}
	s.warnings = append(s.warnings, w)
}

// fail records that the field at path is invalid.
func (s *source) fail(path, format string, args ...any) {
	if s.object != nil {
		s.errs = append(s.errs, s.object.Problem(split(path), format, args...))
		return
	}
	s.errs = append(s.errs, fmt.Errorf("%s: %s: %s", s.file, path, fmt.Sprintf(format, args...)))
}

// has reports whether the old object has a value at path.
func (s *source) has(path string) bool { return s.object.Has(split(path)...) }

// drop warns about each field that has a value but no counterpart. A field is a pair of path and
// reason.
func (s *source) drop(fields ...[2]string) {
	for _, f := range fields {
		if s.has(f[0]) {
			s.warn(f[0], "%somitted: %s", s.value(f[0]), f[1])
		}
	}
}

// value returns the scalar at path followed by a space. It is empty for lists and mappings.
func (s *source) value(path string) string {
	if v := s.object.Scalar(split(path)...); v != "" {
		return v + " "
	}
	return ""
}

func split(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(strings.ReplaceAll(path, "[", ".["), ".")
}

// newPool returns a pool in mode shadow with a name and a policy.
func (s *source) newPool(name, policy string) *v1alpha1.CapacityPool {
	p := &v1alpha1.CapacityPool{}
	p.APIVersion, p.Kind, p.Name = v1alpha1.GroupVersion.String(), "CapacityPool", name
	p.Spec.Mode = v1alpha1.ModeShadow
	p.Spec.Policy = &v1alpha1.PolicyRef{Name: policy}
	return p
}

// shadow warns that the new pool changes nothing yet. All old programs but one changed nodes as
// soon as they ran.
func (s *source) shadow(old string) {
	s.warn("",
		"spec.mode is shadow: decisions are taken and recorded and nothing is done; stop %s before it becomes active", old)
}

// A parameter is a flag of an old program as a parameter of the new policy.
type parameter struct{ flag, key, value string }

// stated returns the parameters for the flags that are set. Each pair is a flag and a key.
func stated(f *pflag.FlagSet, pairs [][2]string) []parameter {
	var all []parameter
	for _, x := range pairs {
		if f.Changed(x[0]) {
			all = append(all, parameter{x[0], x[1], f.Lookup(x[0]).Value.String()})
		}
	}
	return all
}

// offer sets the parameters that the policy of a pool accepts. If loud, it warns about the others.
func (r *reader) offer(s *source, p *v1alpha1.CapacityPool, loud bool, parameters []parameter) {
	for _, x := range parameters {
		if r.o.Check != nil {
			if err := r.o.Check(p.Spec.Policy.Name + ":" + x.key + "=" + x.value); err != nil {
				if loud {
					s.warn("", "--%s=%s is dropped: %v", x.flag, x.value, err)
				}
				continue
			}
		}
		set(p, x.key, x.value)
	}
}

// set sets a parameter of the policy of a pool.
func set(p *v1alpha1.CapacityPool, key, value string) {
	if p.Spec.Policy.Parameters == nil {
		p.Spec.Policy.Parameters = map[string]string{}
	}
	p.Spec.Policy.Parameters[key] = value
}

// named returns the metadata to carry over: what the user wrote, without what an API server adds.
func named(old *metav1.ObjectMeta) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: old.Name, Namespace: old.Namespace, Labels: old.Labels}
	for _, k := range sorted(old.Annotations) {
		if k != "kubectl.kubernetes.io/last-applied-configuration" {
			if m.Annotations == nil {
				m.Annotations = map[string]string{}
			}
			m.Annotations[k] = old.Annotations[k]
		}
	}
	return m
}
