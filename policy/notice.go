package policy

import "time"

// The values of Market.Provider: the providers that sell the markets of a trace or of a cluster.
const (
	AWS   = "aws"
	GCP   = "gcp"
	Azure = "azure"

	// Rackspace is the provider whose Spot markets are auctions.
	Rackspace = "rackspace"
)

// A NoticeRule states how long before a reclaim a provider gives notice.
type NoticeRule struct {
	Provider string

	// Lead is the time from the notice to the reclaim, as documented.
	Lead time.Duration

	// Source is the document that states Lead.
	Source string
}

// noticeRules is ascending by provider. Both the simulator and the controller use it, so that a
// policy has the same time in both.
var noticeRules = [...]NoticeRule{
	{AWS, 120 * time.Second, "Amazon EC2 User Guide, Spot Instance interruption notices"},
	{Azure, 30 * time.Second, "Azure documentation, Use Azure Spot Virtual Machines: Scheduled Events, Preempt"},
	{GCP, 30 * time.Second, "Compute Engine documentation, Spot VMs, preemption process: best-effort shutdown period"},
	{Rackspace, 6 * time.Minute,
		"Rackspace Spot documentation, Spot scale and sizing guidelines: notice period after an auction"},
}

// GoogleNotice returns the time from a notice to the reclaim of a Spot machine of Google Cloud with a
// preemptionNoticeDuration, in seconds, and whether that value is valid. The notice is given by the
// metadata of the machine, the given time before the shutdown signal; the machine then has up to
// about 30 s, which are counted only without an advance notice (Compute Engine API,
// scheduling.preemptionNoticeDuration and scheduling.skipGuestOsShutdown;
// cloudpilot-ai/karpenter-provider-gcp, docs/spot-preemption.md: the values are 0, the default, and
// 120).
func GoogleNotice(seconds int64) (lead time.Duration, ok bool) {
	switch seconds {
	case 0:
		return NoticeLead(GCP), true
	case 120:
		return 120 * time.Second, true
	}
	return 0, false
}

// NoticeRules returns the rules of all providers, ascending by provider.
func NoticeRules() []NoticeRule { return append([]NoticeRule(nil), noticeRules[:]...) }

// NoticeLead returns the time from a notice to the reclaim for a provider. For an unknown provider
// it is the shortest of all rules, so that callers do not rely on time that they may not have.
func NoticeLead(provider string) time.Duration {
	least := noticeRules[0].Lead
	for i := range noticeRules {
		if noticeRules[i].Provider == provider {
			return noticeRules[i].Lead
		}
		least = min(least, noticeRules[i].Lead)
	}
	return least
}
