package weather

import (
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// A Basis is the kind of evidence for a constant of the model.
type Basis string

// The kinds of evidence.
const (
	// Fitted constants are fitted to a recording, and the fit can be repeated.
	Fitted Basis = "fitted"

	// Published constants are figures measured or stated by others.
	Published Basis = "published"

	// Modelled constants are assumed; no measurement of them is known.
	Modelled Basis = "modelled"
)

// An Assumption describes one constant of the model, or several related ones, and the evidence for
// it.
type Assumption struct {
	// Name is the name of the field of [Params], or another name of the constant.
	Name string

	// Value is the value in words and numbers, with its unit.
	Value string

	Basis Basis

	// Source is the recording, the publication or the reason.
	Source string
}

// The recordings and publications that are cited more than once.
const (
	sourceV100     = "SkyPilot availability of V100 in nine zones of us-east-1, us-east-2 and us-west-2, every 195 s for 45 days from 2023-02-15"
	sourceR5       = "SkyPilot availability of r5.16xlarge in three zones of us-east-1, every 34 s for 6 days from 2023-04-19"
	sourceH100     = "launches of 16 a3-highgpu-1g at once in 13 zones of Google Cloud, every 10 minutes for 10 days from 2025-10-04"
	sourceFleet    = "Bamboo trace of a fleet of 32 p3 nodes over 11 hours: 43 losses, never of the whole fleet"
	sourceAdvisor  = "AWS Spot Instance Advisor, Linux, 2025-06-28"
	sourceAWSDocs  = "AWS documentation of Spot interruption notices and rebalance recommendations"
	sourceNTH      = "one user's count (aws-node-termination-handler, issue 141)"
	sourceNoFigure = "not measured"
)

// Assumptions lists the evidence for the constants in p. It applies to the values of
// [DefaultParams]; it does not apply to constants that a user has changed.
func (p *Params) Assumptions() []Assumption {
	list := p.rateAssumptions()
	list = append(list, p.shortageAssumptions()...)
	list = append(list, noticeLeads()...)
	return append(list, p.noticeAssumptions()...)
}

func (p *Params) rateAssumptions() []Assumption {
	return []Assumption{
		{"BandMonthly", numbers(p.BandMonthly[:], "%.3f") + " reclaimed within 730 h, by band", Published,
			"middle of each band of the " + sourceAdvisor + "; .30 for the open one is modelled"},
		{"BandSharesCPU", numbers(p.BandSharesCPU[:], "%.2f") + " of markets, by band", Published, sourceAdvisor},
		{"BandSharesGPU", numbers(p.BandSharesGPU[:], "%.2f") + " of markets, by band", Published, sourceAdvisor},
		{"SlotsCPU", fmt.Sprintf("%g nodes (median of a market)", p.SlotsCPU), Modelled, sourceNoFigure},
		{"SlotsGPU", fmt.Sprintf("%g nodes (median of a market), where no depth is drawn", p.SlotsGPU), Modelled,
			sourceNoFigure},
		{"SlotsSigma", fmt.Sprintf("%g (deviation of the logarithm)", p.SlotsSigma), Modelled, sourceNoFigure},
		{"FrailtySigma", fmt.Sprintf("%g (deviation of the logarithm)", p.FrailtySigma), Fitted,
			"deviation between zones: .88 in nine of V100, .97 in three of r5.16xlarge, .37 in four of V100 in April 2023"},
		{"HourOfDay", spread(p.HourOfDay[:]) + " times the mean rate", Published,
			"unavailability of V100 in us-west-2 by local hour, February 2023, with the swing of the nine recorded zones"},
		{"DayOfWeek", spread(p.DayOfWeek[:]) + " times the mean rate", Published, "as HourOfDay, by weekday"},
		{"CalmHours, StressedHours, Stressed", fmt.Sprintf("%g h calm, %g h at %g times the mean rate", p.CalmHours,
			p.StressedHours, p.Stressed), Modelled, "reclaims come in bouts; " + sourceNoFigure},
	}
}

func (p *Params) shortageAssumptions() []Assumption {
	s := &p.Scarce
	return []Assumption{
		{"GapShape", fmt.Sprintf("%g (Weibull)", p.GapShape), Fitted, "times between outages, " + sourceR5},
		{"LengthShape, LengthScale", fmt.Sprintf("%g and %g h (Weibull)", p.LengthShape, p.LengthScale), Fitted,
			"lengths of the outages of GapShape"},
		{"CandidateGap", fmt.Sprintf("%g h", p.CandidateGap), Modelled,
			"how finely shortages are shared among markets, not how often a market meets one"},
		{"ShortageShare", numbers(p.ShortageShare[:], "%g") +
			" of the band's rate, by type in zone, type in region, zone, region", Modelled, "shortages take about as many nodes as the calendars; zones of a type fail together more often than types of a zone"},
		{"Scarce",
			fmt.Sprintf("mean slack %g ± %g, unrest %g, variances common to a region %s and of a zone %s at paces of %s h; %d nodes make up a slack of %g (median of a zone; deviation of the logarithm %g)",
				s.Mean, s.Spread, s.Unrest, numbers(s.Common, "%g"), numbers(s.Own, "%g"), numbers(s.Paces,
					"%g"), DepthMax, s.Width, s.WidthSpread), Fitted, "mean of the price processes of three regions, " + sourceV100 +
				"; the slack of nodes: " + sourceH100},
		{"DepthCalm", fmt.Sprintf("%g, mean slack of the depth of types with accelerators that Scarce does not close",
			p.DepthCalm), Modelled, sourceNoFigure},
		{"DepthWhole", fmt.Sprintf("%g of shortages take every slot", p.DepthWhole), Published,
			"SkyPilot availability of 16 V100 at once: 36–72% of drops take all of them"},
		{"DepthA, DepthB", fmt.Sprintf("%g and %g (beta), mean %.2f", p.DepthA, p.DepthB, p.DepthA/(p.DepthA+p.DepthB)),
			Fitted, sourceFleet},
		{"OnDemandShare", fmt.Sprintf("%g of the shortages of scarce types reach launches on demand", p.OnDemandShare),
			Modelled, "AWS documentation of InsufficientInstanceCapacity: launches on demand may be refused; how often is " +
				sourceNoFigure},
		{"TakeWindow", p.TakeWindow.String(), Published,
			"more than 92% of joint interruptions hit the same type and zone within 3 minutes"},
	}
}

// noticeLeads lists the time between notice and reclaim of each provider, which does not depend on
// p.
func noticeLeads() []Assumption {
	var list []Assumption
	for _, r := range policy.NoticeRules() {
		list = append(list, Assumption{"Notice lead of " + r.Provider, r.Lead.String(), Published, r.Source})
	}
	return list
}

func (p *Params) noticeAssumptions() []Assumption {
	return []Assumption{
		{"NoticeLost, NoticeLate", fmt.Sprintf("%g never come, %g come late", p.NoticeLost, p.NoticeLate), Modelled,
			sourceAWSDocs + ": on a best effort basis; " + sourceNoFigure},
		{"RecommendedShare", fmt.Sprintf("%g of reclaims are recommended before their notice", p.RecommendedShare),
			Published, "9 of 15 in " + sourceNTH},
		{"RecommendedLead", fmt.Sprintf("%v before the notice (mean, exponential, at most an hour before the reclaim)",
			p.RecommendedLead), Modelled, "17 min to 8.7 h in that count"},
		{"RecommendedPrecision",
			fmt.Sprintf("%g of recommendations are followed by their reclaim within an hour, in bursts as singly",
				p.RecommendedPrecision), Modelled, "9 of 30 within hours in that count; bursts " + sourceNoFigure},
	}
}

// numbers formats numbers separated by slashes.
func numbers(x []float64, format string) string {
	words := make([]string, len(x))
	for i, v := range x {
		words[i] = fmt.Sprintf(format, v)
	}
	return strings.Join(words, "/")
}

// spread formats the range of the numbers.
func spread(x []float64) string {
	lo, hi := x[0], x[0]
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	return fmt.Sprintf("%.2f…%.2f", lo, hi)
}
