package weather

import (
	"fmt"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestMonthlyReclaimsOfBand draws 10,000 nodes per band that are held for a month, in 500 markets
// of a region each. The published frequency counts every interruption, so calendars and shortages
// together must stay within the band.
func TestMonthlyReclaimsOfBand(t *testing.T) {
	published := [bands][2]float64{{0, .05}, {.05, .10}, {.10, .15}, {.15, .20}, {.20, 1}}
	const markets, slots = 500, 20
	for band, want := range published {
		cfg := config(31)
		cfg.To, cfg.Slots = cfg.From+spanOf(policy.HoursPerMonth), slots
		of := regional(markets)
		for i := range of {
			of[i].Band = policy.Band(band)
		}
		w := mustNew(t, cfg, of)
		var causes [CauseOrdered + 1]int
		for m := range of {
			for slot := range slots {
				if r, lost := w.Reclaim(m, slot, cfg.From); lost && r.At < cfg.To {
					causes[r.Cause]++
				}
			}
		}
		calendar, shortage := causes[CauseCalendar], causes[CauseShortage]
		got := float64(calendar+shortage) / (markets * slots)
		t.Logf("band %d: %.4f reclaimed in a month, %d by calendars and %d by shortages", band, got, calendar, shortage)
		if got < want[0] || got > want[1] {
			t.Errorf("band %d: %.3f of 10,000 nodes are reclaimed in a month, published are %.2f to %.2f", band, got, want[0], want[1])
		}
		if least := (calendar + shortage) / 3; calendar < least || shortage < least {
			t.Errorf("band %d: calendars take %d nodes and shortages %d, want about as many", band, calendar, shortage)
		}
	}
}

// regional returns Spot markets of a region each, which share no shortage.
func regional(n int) []Market {
	markets := spotMarkets(n)
	for i := range markets {
		m := &markets[i]
		m.Region, m.GPU = fmt.Sprintf("us-east-%d", i), false
		m.Name = m.Region + "/" + m.Type
	}
	return markets
}
