package karpenter

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/awslabs/operatorpkg/status"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// The messages that Karpenter's provider for Azure writes, with its own words.
const (
	familyQuota   = "subscription level %s vCPU quota for %s has been reached (may try provision an alternative instance type)"
	spotQuotaText = "this subscription has reached the regional vCPU quota for spot (LowPriorityQuota). To scale beyond this limit, " +
		"please review the quota increase process here: https://docs.microsoft.com/en-us/azure/azure-portal/supportability/low-priority-quota"
	zonal      = "unable to allocate resources in the selected zone (%s). (will try a different zone to fulfill your request)"
	allocation = "unable to allocate resources with selected VM size (%s). (will try a different VM size to fulfill your request)"
	noSKU      = "the requested SKU is unavailable for instance type %s in zone %s with capacity type %s, for more details please " +
		"visit: https://aka.ms/azureskunotavailable"
	overconstrainedIn = "unable to allocate resources in the selected zone (%s) with %s capacity type and %s VM size. (will try a " +
		"different zone, capacity type or VM size to fulfill your request)"
	overconstrained = "unable to allocate resources in all zones with %s capacity type and %s VM size. (will try a different " +
		"capacity type or VM size to fulfill your request)"
)

// TestScopesOfRefusals: which markets a refusal of Azure concerns.
func TestScopesOfRefusals(t *testing.T) {
	const d8, where = "Standard_D8s_v5", "westeurope"
	in := func(zone, family, kind string, c policy.CapacityType) backend.Scope {
		return backend.Scope{Provider: "azure", Region: where, Zone: zone, Family: family, Type: kind, Capacity: c}
	}
	od, spot := policy.OnDemand, policy.Spot
	for name, c := range map[string]struct {
		reason, message string
		want            []backend.Scope
	}{
		"quota of a family": {reasonQuota, fmt.Sprintf(familyQuota, "on-demand", d8), []backend.Scope{in("", "Dsv5", "", od)}},
		"of Spot":           {reasonQuota, fmt.Sprintf(familyQuota, "spot", d8), []backend.Scope{in("", "Dsv5", "", spot)}},
		"of an unknown type": {reasonQuota, fmt.Sprintf(familyQuota, "spot", "Standard_X1_v99"),
			[]backend.Scope{in("", "", "Standard_X1_v99", spot)}},
		"quota of Spot": {reasonQuota, spotQuotaText, []backend.Scope{in("", "", "", spot)}},
		"region": {reasonAllocation, fmt.Sprintf(allocation, d8),
			[]backend.Scope{in("", "", d8, od), in("", "", d8, spot)}},
		"unavailable": {reasonUnavailable, fmt.Sprintf(noSKU, d8, where+"-2", "spot"), []backend.Scope{in("", "", d8, spot)}},
		"one zone": {reasonOverconstrainedIn, fmt.Sprintf(overconstrainedIn, where+"-2", "spot", d8),
			[]backend.Scope{in(where+"-2", "", d8, spot)}},
		"all zones":        {reasonOverconstrained, fmt.Sprintf(overconstrained, "on-demand", d8), []backend.Scope{in("", "", d8, od)}},
		"other quota text": {reasonQuota, "the quota has been reached", nil},
		"no type":          {reasonAllocation, "unable to allocate", nil},
		"other reason":     {"LaunchFailed", fmt.Sprintf(familyQuota, "spot", d8), nil},
	} {
		if got := scopesOf("azure", where, c.reason, c.message); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestRefusedAttempts: each refused attempt for a claim is reported once, with the markets that its
// message names. An attempt that succeeded, one from before the start, and one of which the region
// is unknown are not.
func TestRefusedAttempts(t *testing.T) {
	b, _ := launchBench(t)
	claim := func(reason, message string, zones ...string) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n", Labels: map[string]string{
			karpv1.NodePoolLabelKey: "web-spot"}}}
		c.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
		c.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{in(karpv1.CapacityTypeLabelKey, "spot"),
			in(corev1.LabelInstanceTypeStable, "Standard_D4s_v5", "Standard_D8s_v5")}
		if len(zones) > 0 {
			c.Spec.Requirements = append(c.Spec.Requirements, in(corev1.LabelTopologyZone, zones...))
		}
		c.Status.Conditions = []status.Condition{{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionUnknown,
			Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(b.clock.Now().Truncate(time.Second).Add(time.Second))}}
		return c
	}
	seen := func(was, c *karpv1.NodeClaim) (events []backend.Event) {
		b.heard.Events, b.heard.Wakes = nil, nil
		b.informer.claimSeen(was, c)
		for _, e := range b.heard.Events {
			if e.Kind != backend.MetRefusal || e.Pool != "web" || e.At == 0 {
				t.Errorf("reported %+v", e)
			}
			e.Kind, e.Pool, e.At = 0, "", 0
			events = append(events, e)
		}
		if len(events) > 0 && !slices.Contains(b.heard.Wakes, backend.WakeRefused) {
			t.Error("no step is requested")
		}
		return events
	}
	quota := claim(reasonQuota, fmt.Sprintf(familyQuota, "spot", "Standard_D8s_v5"), "westeurope-1", "westeurope-2")
	family := []backend.Event{{Scope: backend.Scope{Provider: "azure", Region: "westeurope", Family: "Dsv5", Capacity: policy.Spot}}}
	if got := seen(nil, quota); !slices.Equal(got, family) {
		t.Errorf("a quota: %+v", got)
	}
	if got := seen(quota, quota.DeepCopy()); got != nil {
		t.Errorf("the same refusal: %+v", got)
	}
	next := claim(reasonZonal, fmt.Sprintf(zonal, "westeurope-2"), "westeurope-1", "westeurope-2")
	want := []backend.Event{{Market: "azure/westeurope/westeurope-2/Standard_D4s_v5/spot"},
		{Market: "azure/westeurope/westeurope-2/Standard_D8s_v5/spot"}}
	if got := seen(quota, next); !slices.Equal(got, want) {
		t.Errorf("a zone: %+v", got)
	}
	if got := seen(nil, claim(reasonZonal, fmt.Sprintf(zonal, "westeurope-3"), "westeurope-1")); got != nil {
		t.Errorf("a zone that was not requested: %+v", got)
	}
	b.cfg.Regions = nil
	if got := seen(nil, claim(reasonQuota, quota.Status.Conditions[0].Message)); got != nil {
		t.Errorf("an unknown region: %+v", got)
	}
	b.cfg.Regions = []string{"westeurope"}
	if got := seen(nil, claim(reasonQuota, quota.Status.Conditions[0].Message)); !slices.Equal(got, family) {
		t.Errorf("the only region: %+v", got)
	}
	done := quota.DeepCopy()
	done.Status.Conditions[0].Status = metav1.ConditionTrue
	if got := seen(nil, done); got != nil && got[0].Scope != (backend.Scope{}) {
		t.Errorf("a launched claim: %+v", got)
	}
	b.cfg.Since = b.now().Add(time.Hour)
	if got := seen(nil, quota); got != nil {
		t.Errorf("from before the start: %+v", got)
	}
}

// TestRegionsThatBeginAlike: the region of a zone is not one whose name is its beginning.
func TestRegionsThatBeginAlike(t *testing.T) {
	x := &claimConverter{cfg: &Config{Regions: []string{"eastus", "eastus2"}}}
	c := &karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{ProviderID: "azure:///subscriptions/x"}}
	if got := x.region(c, "eastus2-1"); got != "eastus2" {
		t.Errorf("region %s", got)
	}
}
