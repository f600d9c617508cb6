package v1alpha1

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/spotter-dev/spotter/policy"
)

// Validate reports every rule that p breaks. It expects defaults to be set.
func (p *CapacityPool) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	errs := p.Spec.Backend.validate(spec.Child("backend"))
	errs = append(errs, p.Spec.Markets.validate(spec.Child("markets"))...)
	errs = append(errs, p.Spec.Capacity.validate(spec.Child("capacity"))...)
	errs = append(errs, p.Spec.Disruption.validate(spec.Child("disruption"))...)
	errs = append(errs, p.Spec.Template.validate(spec.Child("template"))...)
	if p.Spec.Backend.Karpenter != nil {
		errs = append(errs, restricted(spec.Child("template", "labels"), p.Spec.Template.Labels)...)
	}
	name := field.NewPath("metadata", "name")
	if p.Name == "" {
		errs = append(errs, field.Required(name, "a pool has a name"))
	}
	errs = append(errs, atMost(name, p.Name, poolNameMax)...)
	if text, stated := p.Annotations[AnnotationCapacityTypes]; stated {
		at := field.NewPath("metadata", "annotations").Key(AnnotationCapacityTypes)
		for _, c := range strings.Split(text, ",") {
			errs = append(errs, oneOf(at, c, policy.OnDemand.String(), policy.Spot.String())...)
		}
	}
	if text, stated := p.Annotations[AnnotationOwnShare]; stated {
		if x := p.ownShare(); !(x > 0 && x < 1) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(AnnotationOwnShare), text,
				"must be above 0 and below 1"))
		}
	}
	if text := p.Spec.NodeFee; text != "" {
		if _, err := policy.ParseFee(text); err != nil {
			errs = append(errs, field.Invalid(spec.Child("nodeFee"), text, err.Error()))
		}
	}
	if x := p.Spec.Policy; x != nil {
		errs = append(errs, x.validate(spec.Child("policy"))...)
	}
	return append(errs, oneOf(spec.Child("mode"), p.Spec.Mode, ModeShadow, ModeApprove, ModeActive, ModeOff)...)
}

// cronFields has the form that both Karpenter and we understand.
var cronFields = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*,/?-]+( +[0-9A-Za-z*,/?-]+){4})$`)
})

// openedName is what a parameter may be that is opened.
var openedName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`) })

func (r *PolicyRef) validate(at *field.Path) field.ErrorList {
	errs := required(at.Child("name"), r.Name)
	errs = append(errs, atMost(at.Child("name"), r.Name, wordMax)...)
	errs = append(errs, entries(at.Child("parameters"), r.Parameters, parametersMax, wordMax, parameterValueMax)...)
	for _, k := range slices.Sorted(maps.Keys(r.Parameters)) {
		if v := r.Parameters[k]; strings.ContainsAny(k+v, ":,") || strings.Contains(k, "=") {
			errs = append(errs, field.Invalid(at.Child("parameters"), k+"="+v,
				"must hold no colon or comma, and the key no equals sign"))
		}
	}
	for _, k := range []string{"bundle", "runtime"} {
		if v, given := r.Parameters[k]; given && !openedName().MatchString(v) {
			errs = append(errs, field.Invalid(at.Child("parameters").Key(k), v,
				"must be a name, of letters, digits, '-', '_' and '.', and no path"))
		}
	}
	return errs
}

func (b *Backend) validate(at *field.Path) field.ErrorList {
	set := 0
	for _, is := range [...]bool{b.Karpenter != nil, b.AutoScalingGroups != nil, b.Rackspace != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return field.ErrorList{field.Invalid(at, set,
			"exactly one of karpenter, autoScalingGroups and rackspace must be set")}
	}
	var errs field.ErrorList
	switch {
	case b.Karpenter != nil:
		if (b.Karpenter.NodeClassName != "") == (b.Karpenter.NodeClassSelector != nil) {
			errs = append(errs, field.Invalid(at.Child("karpenter"), b.Karpenter.NodeClassName,
				"exactly one of nodeClassName and nodeClassSelector must be set"))
		}
		errs = append(errs, atMost(at.Child("karpenter", "nodeClassName"), b.Karpenter.NodeClassName, nameMax)...)
	case b.AutoScalingGroups != nil:
		if len(b.AutoScalingGroups.DiscoveryTags) == 0 {
			errs = append(errs, field.Required(at.Child("autoScalingGroups", "discoveryTags"),
				"at least one tag finds the groups"))
		}
		errs = append(errs, entries(at.Child("autoScalingGroups", "discoveryTags"), b.AutoScalingGroups.DiscoveryTags,
			tagsMax, tagKeyMax, tagValueMax)...)
	default:
		r := at.Child("rackspace")
		errs = append(errs, required(r.Child("cloudspace"), b.Rackspace.Cloudspace)...)
		errs = append(errs, required(r.Child("org"), b.Rackspace.Org)...)
		errs = append(errs, required(r.Child("credentialsSecretRef", "name"), b.Rackspace.CredentialsSecretRef.Name)...)
		errs = append(errs, atMost(r.Child("cloudspace"), b.Rackspace.Cloudspace, nameMax)...)
		errs = append(errs, atMost(r.Child("org"), b.Rackspace.Org, nameMax)...)
		errs = append(errs, atMost(r.Child("credentialsSecretRef", "name"), b.Rackspace.CredentialsSecretRef.Name,
			nameMax)...)
	}
	return errs
}

func (m *Markets) validate(at *field.Path) field.ErrorList {
	errs := words(at.Child("regions"), m.Regions, placesMax)
	errs = append(errs, words(at.Child("zones"), m.Zones, placesMax)...)
	errs = append(errs, words(at.Child("families"), m.Families, familiesMax)...)
	errs = append(errs, words(at.Child("instanceTypes"), m.InstanceTypes, typesMax)...)
	errs = append(errs, words(at.Child("categories"), m.Categories, placesMax)...)
	if len(m.Architectures) > 2 {
		errs = append(errs, field.TooMany(at.Child("architectures"), len(m.Architectures), 2))
	}
	for i, a := range m.Architectures {
		errs = append(errs, oneOf(at.Child("architectures").Index(i), a, "amd64", "arm64")...)
	}
	errs = append(errs, within(at.Child("minVCPU"), m.MinVCPU, 1, vcpuMax)...)
	errs = append(errs, within(at.Child("maxVCPU"), m.MaxVCPU, 1, vcpuMax)...)
	errs = append(errs, within(at.Child("minGPUs"), m.MinGPUs, 0, gpusMax)...)
	errs = append(errs, within(at.Child("maxInstanceTypes"), m.MaxInstanceTypes, 1, typesMax)...)
	errs = append(errs, within(at.Child("maxZones"), m.MaxZones, 1, placesMax)...)
	errs = append(errs, notNegative(at.Child("minMemory"), m.MinMemory)...)
	if m.MinVCPU != nil && m.MaxVCPU != nil && *m.MinVCPU > *m.MaxVCPU {
		errs = append(errs, field.Invalid(at.Child("minVCPU"), *m.MinVCPU,
			"must not be above maxVCPU, "+strconv.Itoa(int(*m.MaxVCPU))))
	}
	if m.MaxPrice != nil && !(*m.MaxPrice > 0) {
		errs = append(errs, field.Invalid(at.Child("maxPrice"), *m.MaxPrice, "must be above 0 $ per hour"))
	}
	if s := m.MinPlacementScore; s != nil && (*s < 0 || *s > 10) {
		errs = append(errs, field.Invalid(at.Child("minPlacementScore"), *s, "must be from 0 to 10"))
	}
	return errs
}

func (c *Capacity) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.SpotShare != nil && c.ExactRatio != nil {
		errs = append(errs, field.Invalid(at.Child("exactRatio"), *c.ExactRatio,
			"spotShare and exactRatio exclude each other"))
	}
	errs = append(errs, share(at.Child("exactRatio"), c.ExactRatio)...)
	errs = append(errs, share(at.Child("lossBudget"), c.LossBudget)...)
	if s := c.SpotShare; s != nil {
		errs = append(errs, s.validate(at.Child("spotShare"))...)
	}
	if l := c.Limits; l != nil {
		limits := at.Child("limits")
		errs = append(errs, notNegative(limits.Child("cpu"), l.CPU)...)
		errs = append(errs, notNegative(limits.Child("memory"), l.Memory)...)
		errs = append(errs, notNegative(limits.Child("gpu"), l.GPU)...)
	}
	return errs
}

func (s *SpotShare) validate(at *field.Path) field.ErrorList {
	errs := share(at.Child("min"), s.Min)
	errs = append(errs, share(at.Child("max"), s.Max)...)
	errs = append(errs, share(at.Child("target"), s.Target)...)
	if len(errs) > 0 {
		return errs
	}
	low, high := orElse(s.Min, 0), orElse(s.Max, 1)
	if low > high {
		return append(errs, field.Invalid(at.Child("min"), low, "must not be above max"))
	}
	if t := s.Target; t != nil && (*t < low || *t > high) {
		errs = append(errs, field.Invalid(at.Child("target"), *t, "must be between min and max"))
	}
	return errs
}

func (d *Disruption) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if d.Budget != nil {
		if _, err := quantity(d.Budget); err != "" {
			errs = append(errs, field.Invalid(at.Child("budget"), d.Budget.String(), err))
		}
	}
	if (d.Schedule != "") != (d.Duration != nil) {
		errs = append(errs, field.Invalid(at.Child("schedule"), d.Schedule, "schedule and duration must be set together"))
	}
	if d.Schedule != "" {
		errs = append(errs, cronSchedule(at.Child("schedule"), d.Schedule)...)
	}
	errs = append(errs, period(at.Child("duration"), d.Duration)...)
	errs = append(errs, d.validateClosing(at)...)
	errs = append(errs, period(at.Child("consolidateAfter"), d.ConsolidateAfter)...)
	errs = append(errs, period(at.Child("expireAfter"), d.ExpireAfter)...)
	errs = append(errs, period(at.Child("cooldown"), d.Cooldown)...)
	errs = append(errs, share(at.Child("savingsThreshold"), d.SavingsThreshold)...)
	return append(errs, oneOf(at.Child("consolidationPolicy"), d.ConsolidationPolicy,
		ConsolidateWhenEmptyOrUnderutilized, ConsolidateWhenEmpty, ConsolidateNever)...)
}

// validateClosing checks maintenance windows and freezes.
func (d *Disruption) validateClosing(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(d.Windows) > windowsMax {
		errs = append(errs, field.TooMany(at.Child("windows"), len(d.Windows), windowsMax))
	}
	if len(d.Freezes) > freezesMax {
		errs = append(errs, field.TooMany(at.Child("freezes"), len(d.Freezes), freezesMax))
	}
	for i, w := range d.Windows {
		at := at.Child("windows").Index(i)
		errs = append(errs, cronSchedule(at.Child("schedule"), w.Schedule)...)
		if w.Duration.Duration <= 0 {
			errs = append(errs, field.Invalid(at.Child("duration"), w.Duration.Duration.String(), "must be above 0"))
		}
	}
	for i, f := range d.Freezes {
		at := at.Child("freezes").Index(i)
		switch {
		case f.From.IsZero():
			errs = append(errs, field.Required(at.Child("from"), "must be set"))
		case f.To.IsZero():
			errs = append(errs, field.Required(at.Child("to"), "must be set"))
		case !f.From.Before(&f.To):
			errs = append(errs, field.Invalid(at.Child("from"), f.From.UTC().Format(time.RFC3339),
				"must be before to, "+f.To.UTC().Format(time.RFC3339)))
		}
		errs = append(errs, atMost(at.Child("reason"), f.Reason, reasonMax)...)
		if strings.ContainsFunc(f.Reason, unicode.IsControl) {
			errs = append(errs, field.Invalid(at.Child("reason"), f.Reason, "must hold no control characters"))
		}
	}
	return errs
}

// cronSchedule refuses a schedule that cannot be read or never comes due.
func cronSchedule(at *field.Path, text string) field.ErrorList {
	errs := atMost(at, text, scheduleMax)
	if !cronFields().MatchString(text) {
		return append(errs,
			field.Invalid(at, text, "must be five fields of cron, or @yearly, @monthly, @weekly, @daily or @hourly"))
	}
	s, err := cron.ParseStandard(text)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(at, text, err.Error()))
	case s.Next(time.Unix(0, 0).UTC()).IsZero():
		errs = append(errs, field.Invalid(at, text, "names a day that never comes"))
	}
	return errs
}

// Validate reports every rule that b breaks. It expects defaults to be set.
func (b *GPUBudget) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	errs := required(field.NewPath("metadata", "name"), b.Name)
	errs = append(errs, atMost(field.NewPath("metadata", "name"), b.Name, budgetNameMax)...)
	errs = append(errs, selector(spec.Child("selector"), &b.Spec.Selector)...)
	errs = append(errs, atMost(spec.Child("resourceName"), b.Spec.ResourceName, keyMax)...)
	errs = append(errs, required(spec.Child("resourceName"), b.Spec.ResourceName)...)
	if slices.Contains(uncounted, b.Spec.ResourceName) {
		errs = append(errs, field.Invalid(spec.Child("resourceName"), b.Spec.ResourceName, "must be an accelerator, or cpu"))
	}
	q, quota := &b.Spec.Quota, spec.Child("quota")
	if q.GPUHours == nil && q.Dollars == nil {
		errs = append(errs, field.Required(quota, "gpuHours or dollars must be set"))
	}
	for _, x := range [...]struct {
		name string
		v    *float64
	}{{"gpuHours", q.GPUHours}, {"dollars", q.Dollars}} {
		switch {
		case x.v == nil:
		case !(*x.v >= 0):
			errs = append(errs, field.Invalid(quota.Child(x.name), *x.v, "must not be negative"))
		case *x.v > quotaMax:
			errs = append(errs, field.Invalid(quota.Child(x.name), *x.v, "must be at most 1e12"))
		}
	}
	errs = append(errs, within(quota.Child("windowHours"), &q.WindowHours, 1, windowHoursMax)...)
	e, at := &b.Spec.Enforcement, spec.Child("enforcement")
	errs = append(errs, period(at.Child("overQuotaDelay"), e.OverQuotaDelay)...)
	errs = append(errs, period(at.Child("podGracePeriod"), e.PodGracePeriod)...)
	errs = append(errs, oneOf(spec.Child("accounting"), b.Spec.Accounting, AccountLedger, AccountLiveObjects)...)
	return append(errs, oneOf(at.Child("action"), e.Action, EnforceEvict, EnforcePause, EnforceAlertOnly)...)
}

// uncounted are resources that pods request and no budget counts.
var uncounted = []string{"memory", "ephemeral-storage", "pods"}

// quotaMax keeps a quota within what can be counted in millionths of a dollar.
const quotaMax = 1e12

// windowHoursMax bounds the window of a budget by a year, and so its ledger.
const windowHoursMax = 8784

func required(at *field.Path, s string) field.ErrorList {
	if s == "" {
		return field.ErrorList{field.Required(at, "must not be empty")}
	}
	return nil
}

func oneOf[T ~string](at *field.Path, v T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, v) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, v, allowed)}
}

func within(at *field.Path, v *int32, least, most int32) field.ErrorList {
	switch {
	case v == nil:
	case *v < least:
		return field.ErrorList{field.Invalid(at, *v, "must be at least "+strconv.Itoa(int(least)))}
	case *v > most:
		return field.ErrorList{field.Invalid(at, *v, "must be at most "+strconv.Itoa(int(most)))}
	}
	return nil
}

// share also refuses NaN.
func share(at *field.Path, v *float64) field.ErrorList {
	if v == nil || *v >= 0 && *v <= 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *v, "must be from 0 to 1")}
}

func notNegative(at *field.Path, q *resource.Quantity) field.ErrorList {
	if q == nil || q.Sign() >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, q.String(), "must not be negative")}
}

// count is a number or a percentage read from an IntOrString.
type count struct {
	n       int32
	percent bool
}

// quantity reads v and says what is wrong with it; empty if nothing is.
func quantity(v *intstr.IntOrString) (count, string) {
	c := count{n: v.IntVal}
	if v.Type == intstr.String {
		text, percent := strings.CutSuffix(v.StrVal, "%")
		n, err := strconv.ParseUint(text, 10, 31) // no sign
		if err != nil || !percent || len(v.StrVal) > 8 {
			return c, "must be a number or a percentage such as 10%"
		}
		c = count{int32(n), true}
	}
	if c.n < 0 {
		return c, "must not be negative"
	}
	if c.percent && c.n > 100 {
		return c, "must not be above 100%"
	}
	return c, ""
}

func orElse[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}
