package importer

import (
	"errors"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/scenarios/trace"
)

// historyText are two responses of advice.capacityHistory as the reference of the method lists their
// fields: a price that falls on the second day and is known for three, and preemption rates with the
// mean 0.07; then a region with a rate of 0.5 on each day, and no price.
const historyText = `{
  "machineType": "n2-standard-8",
  "location": "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-b",
  "preemptionHistory": [
    {"interval": {"startTime": "2026-01-01T08:00:00Z", "endTime": "2026-01-02T08:00:00Z"}, "preemptionRate": 0.14},
    {"interval": {"startTime": "2026-01-02T08:00:00Z", "endTime": "2026-01-03T08:00:00Z"}}
  ],
  "priceHistory": [
    {"interval": {"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-01-02T00:00:00Z"},
     "listPrice": {"currencyCode": "USD", "nanos": 96000000}},
    {"interval": {"startTime": "2026-01-02T00:00:00Z", "endTime": "2026-01-04T00:00:00Z"},
     "listPrice": {"currencyCode": "USD", "units": "0", "nanos": 94056000}}
  ]
}
{
  "machineType": "c3-highcpu-8",
  "location": "projects/p/regions/us-east1",
  "priceHistory": [
    {"interval": {"startTime": "2026-01-01T00:00:00Z"}, "listPrice": {"currencyCode": "USD", "units": "1", "nanos": 500000000}}
  ],
  "preemptionHistory": [{"interval": {"startTime": "2026-01-01T00:00:00Z"}, "preemptionRate": 0.5}]
}
`

// TestCapacityHistory: prices hold from their start, in each zone of a region, and the mean
// preemption rate is an interruption band, with a warning.
func TestCapacityHistory(t *testing.T) {
	tr, report, err := Import([]string{put(t, "history.json", historyText)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Formats[0] != "JSON of Google's advice.capacityHistory" || report.Rows != 6 || report.Bad != 0 || len(tr.Series) != 4 {
		t.Errorf("%+v, %d series", report, len(tr.Series))
	}
	for i := range tr.Series {
		s := &tr.Series[i]
		last := s.Sample(len(s.At) - 1)
		price, band := 1.5, int8(4)
		if s.Type == "n2-standard-8" {
			price, band = 0.094056, 1
			if s.Zone != "us-central1-b" || s.Region != "us-central1" || s.Provider != "gcp" || s.At[0] != at(1, 0) ||
				s.Sample(0).Spot.Float() != 0.096 || s.Sample(0).Band != -1 || s.At[1] != at(1, 8) || s.Sample(1).Band != 1 ||
				s.At[2] != at(2, 0) {
				t.Errorf("%s: %s", s.Name(), describe(tr))
			}
		}
		if last.Spot.Float() != price || last.Band != band {
			t.Errorf("%s ends at %v in band %d, want %v and %d", s.Name(), last.Spot.Float(), last.Band, price, band)
		}
	}
	if tr.To != at(4, 0) || !strings.Contains(strings.Join(tr.Warnings, "\n"), "which is modelled") {
		t.Errorf("to %v, warnings %q", tr.To, tr.Warnings)
	}
	for name, text := range map[string]string{
		"another currency": strings.ReplaceAll(historyText, "USD", "EUR"),
		"no price":         strings.NewReplacer("96000000", "0", "500000000", "-5", `"1"`, `"0"`).Replace(historyText),
		"no place":         strings.NewReplacer("zones/us-central1-b", "nowhere", "regions/us-east1", "regions/us-east9").Replace(historyText),
		"rates above 1":    strings.NewReplacer("0.14", "1.4", "0.5}", "5}").Replace(historyText),
	} {
		if _, report, err := Import([]string{put(t, "history.json", text)}, Options{}); !errors.Is(err, trace.ErrEmpty) || report.Bad != 2 {
			t.Errorf("%s: %v, %+v", name, err, report)
		}
	}
	if _, _, err := Import([]string{put(t, "history.json", historyText[:400])}, Options{}); !errors.Is(err, trace.ErrCorrupt) {
		t.Errorf("cut short: %v", err)
	}
}
