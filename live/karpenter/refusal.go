package karpenter

import (
	"regexp"
	"slices"
	"strings"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// Reasons that Karpenter's provider for Azure writes to the condition Launched of a NodeClaim when
// an attempt is refused, before it tries another type (Azure/karpenter-provider-azure,
// pkg/providers/instance/offerings/commonerrorhandlers.go). Karpenter for AWS tries all types in one
// request and deletes a NodeClaim that no market accepts.
const (
	reasonQuota             = "SubscriptionQuotaReached"
	reasonUnavailable       = "SKUNotAvailable"
	reasonZonal             = "ZonalAllocationFailure"
	reasonAllocation        = "AllocationFailure"
	reasonOverconstrained   = "OverconstrainedAllocationFailure"
	reasonOverconstrainedIn = "OverconstrainedZonalAllocationFailure"
)

// The parts of the messages of these reasons that name a market.
var (
	quotaOf    = regexp.MustCompile(`^subscription level (spot|on-demand) vCPU quota for (\S+) has been reached`)
	spotQuota  = regexp.MustCompile(`regional vCPU quota for spot \(LowPriorityQuota\)`)
	inZone     = regexp.MustCompile(`(?:selected zone \(|in zone )([^)\s]+)`)
	ofType     = regexp.MustCompile(`(?:selected VM size \(|instance type |type and )(Standard_[^)\s]+)`)
	ofCapacity = regexp.MustCompile(`\b(spot|on-demand) capacity type|capacity type (spot|on-demand)\b`)
)

// capacityIn returns the capacity type that a message names.
func capacityIn(message string) (policy.CapacityType, bool) {
	x := ofCapacity.FindStringSubmatch(message)
	if x == nil {
		return 0, false
	}
	return capacityNamed(x[1] + x[2]), true
}

func capacityNamed(name string) policy.CapacityType {
	if name == policy.Spot.String() {
		return policy.Spot
	}
	return policy.OnDemand
}

// first returns the first group of the first match, empty if nothing matches.
func first(x *regexp.Regexp, message string) string {
	if m := x.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return ""
}

// scopesOf returns the markets that a refusal concerns, as its reason and message state:
//
//   - an exhausted quota of a family, all types of the family in the region;
//   - an exhausted quota of Spot, all Spot markets of the region;
//   - an allocation failure, the type in the region, or in the zone if that is named.
//
// It returns nil for another reason, or if the message does not name the markets.
func scopesOf(provider, region, reason, message string) []backend.Scope {
	of := backend.Scope{Provider: provider, Region: region, Zone: first(inZone, message), Type: first(ofType, message)}
	capacity, stated := capacityIn(message)
	switch reason {
	case reasonQuota:
		of.Zone = ""
		if x := quotaOf.FindStringSubmatch(message); x != nil {
			t, known := catalog.Lookup(provider, x[2])
			if of.Capacity, of.Type = capacityNamed(x[1]), x[2]; known {
				of.Type, of.Family = "", t.Family
			}
			return []backend.Scope{of}
		}
		if !spotQuota.MatchString(message) {
			return nil
		}
		of.Capacity, of.Type = policy.Spot, ""
		return []backend.Scope{of}
	case reasonUnavailable, reasonOverconstrained:
		of.Zone = "" // Azure refuses the type in every zone
	case reasonOverconstrainedIn, reasonAllocation:
	default:
		return nil
	}
	if of.Type == "" {
		return nil
	}
	if of.Capacity = capacity; stated {
		return []backend.Scope{of}
	}
	other := of
	of.Capacity, other.Capacity = policy.OnDemand, policy.Spot
	return []backend.Scope{of, other}
}

// attemptRefused reports the refusal of one attempt for a NodeClaim that has no machine yet, once
// for each change of the condition.
func (i *informer) attemptRefused(was, c *karpv1.NodeClaim) {
	x := c.StatusConditions(observed).Get(karpv1.ConditionTypeLaunched)
	if x == nil || x.IsTrue() || policy.TimeOf(x.LastTransitionTime.Time) < i.cfg.Since {
		return
	}
	if was != nil && was.UID == c.UID {
		if y := was.StatusConditions(observed).Get(karpv1.ConditionTypeLaunched); y != nil && y.Reason == x.Reason &&
			y.Message == x.Message && y.LastTransitionTime.Equal(&x.LastTransitionTime) {
			return
		}
	}
	region := i.claims.regionAsked(c)
	if region == "" {
		return // the markets are not known
	}
	e := backend.Event{Kind: backend.MetRefusal, Pool: i.api.poolOf(c), At: i.cfg.now()}
	if x.Reason == reasonZonal {
		i.zoneRefused(e, i.claims.asked(c), first(inZone, x.Message))
		return
	}
	for _, of := range scopesOf(i.claims.provider(c), region, x.Reason, x.Message) {
		e.Scope = of
		i.sink.Meet(e)
		i.sink.Wake(backend.WakeRefused)
	}
}

// zoneRefused reports a refusal in a zone whose message does not name the type: for the markets of
// the zone that the claim requested, if these are few.
func (i *informer) zoneRefused(e backend.Event, asked []string, zone string) {
	asked = slices.DeleteFunc(asked, func(market string) bool {
		parts := strings.Split(market, "/")
		return len(parts) < 3 || parts[2] != zone
	})
	if zone == "" || len(asked) == 0 || len(asked) > refusedMax {
		return
	}
	for _, e.Market = range asked {
		i.sink.Meet(e)
	}
	i.sink.Wake(backend.WakeRefused)
}
