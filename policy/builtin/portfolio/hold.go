package portfolio

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/workload"
)

// reportEvery is how often it is reported what the loss of a group would do, besides
// when a pool is steered anew.
const reportEvery = policy.Time(time.Hour / time.Millisecond)

// addExposed adds a hold for every workload that the loss of one market or zone would
// leave with less than it must have, and says whether nodes allow better.
func (e *Policy) addExposed(s *policy.Snapshot, plan *policy.Plan) {
	if s.Now%reportEvery != 0 && len(plan.Steers) == 0 {
		return
	}
	for w := range s.Workloads {
		if !e.exposure.Tracks(policy.WorkloadID(w)) {
			continue
		}
		l := e.exposure.Loss(policy.WorkloadID(w))
		for _, x := range [...]workload.Exposed{l.Market, l.Zone} {
			if l.Short(x) > 0 {
				plan.Holds = append(plan.Holds, policy.Hold{Pool: policy.None, Node: policy.None, Why: e.exposed(s, &l, x)})
			}
		}
	}
}

// exposed returns the account of a workload that the loss of x would leave short.
func (e *Policy) exposed(s *policy.Snapshot, l *workload.Loss, x workload.Exposed) policy.Why {
	name := s.Workloads[l.Workload].Name
	state := name + " is"
	switch {
	case x.Group.Market >= 0:
		state = "losing market " + s.Markets[x.Group.Market].Name + " would leave " + name
	case x.Group.Zone >= 0:
		state = "losing zone " + s.Zones[x.Group.Zone] + " would leave " + name
	}
	why := policy.Why{Reason: policy.ReasonRisk, Text: fmt.Sprintf("%s %s short of its minimum of %d",
		state, figures.Count(l.Short(x), "pod"), l.Required)}
	switch {
	case l.Mendable(x) <= 0:
		why.Reason = policy.ReasonInfeasible
		why.Text += "; no allowed placement avoids this"
	case l.Unavoidable(x) > 0:
		why.Text += fmt.Sprintf("; no allowed placement avoids %d of these", l.Unavoidable(x))
	default:
		why.Text += "; a wider spread avoids this"
	}
	return why
}
