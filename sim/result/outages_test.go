package result

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// The longest incident is the one that has most of the outage, of equal ones the first.
func TestLongestIncident(t *testing.T) {
	start := policy.TimeOf(time.Date(2026, 1, 8, 0, 0, 0, 0, time.UTC))
	var a, b, all Outages
	a.AddIncident(start.Add(2*time.Hour), &[OutageCauses]int64{CauseMove: 40_000, CauseReclaim: 20_000}, 1)
	a.AddIncident(start.Add(3*time.Hour), &[OutageCauses]int64{CauseGrowth: 60_000}, 3)
	b.AddIncident(start.Add(time.Hour), &[OutageCauses]int64{CauseReclaim: 60_000}, 2)
	a.Longest.Workload, b.Longest.Workload = "a", "b"
	all.Add(&a)
	all.Add(&b)
	if want := (Incident{"a", start.Add(2 * time.Hour), time.Minute, 1, CauseMove}); a.Longest != want {
		t.Errorf("the longest of a is %+v, want %+v", a.Longest, want)
	}
	if want := (Incident{"b", start.Add(time.Hour), time.Minute, 2, CauseReclaim}); all.Longest != want {
		t.Errorf("the longest of all is %+v, want %+v", all.Longest, want)
	}
	spot := all.Causes.Spot()
	if all.PodsAffected != 6 || spot != (CauseOutage{80 * time.Second, 1}) ||
		all.Causes[CauseMove] != (CauseOutage{40 * time.Second, 1}) || all.Causes[CauseGrowth].Incidents != 1 {
		t.Errorf("all are %+v, of Spot %+v", all, spot)
	}
}
