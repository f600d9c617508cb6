package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A capacityHistory is a response of the Compute Engine API to advice.capacityHistory: the Spot
// prices of a machine type in a zone or region, and for each day the share of the Spot machines that
// stopped because they were preempted (Compute Engine documentation, "View the preemption rate and
// pricing for Spot VMs", and the reference of the method,
// https://docs.cloud.google.com/compute/docs/reference/rest/beta/advice/capacityHistory).
type capacityHistory struct {
	MachineType string `json:"machineType"`
	Location    string `json:"location"` // URL of a zone or region, or the end of one

	Preemptions []struct {
		Interval interval `json:"interval"`
		Rate     *float64 `json:"preemptionRate"` // nil means 0, which the API may omit
	} `json:"preemptionHistory"`

	Prices []struct {
		Interval interval `json:"interval"`
		Price    struct {
			Currency string      `json:"currencyCode"`
			Units    json.Number `json:"units"`
			Nanos    json.Number `json:"nanos"`
		} `json:"listPrice"`
	} `json:"priceHistory"`
}

type interval struct {
	Start time.Time `json:"startTime"`
	End   time.Time `json:"endTime"`
}

// sharesAreModelled describes how preemption rates are used.
const sharesAreModelled = "Google's preemption rates are shares of the Spot machines that stopped; taken as the share of " +
	"nodes that are reclaimed within a month, which is modelled"

// capacityHistories reads responses of advice.capacityHistory, one after the other.
func (im *importer) capacityHistories(r io.Reader) error {
	im.took("JSON of Google's advice.capacityHistory")
	lines := &lineCounter{r: r}
	d := json.NewDecoder(lines)
	for {
		var h capacityHistory
		err := d.Decode(&h)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return jsonError(err, lines, d)
		}
		im.report.Rows += len(h.Prices) + len(h.Preemptions)
		if err := im.capacityHistory(&h); err != nil {
			if err := im.badAt(h.MachineType+" in "+h.Location, err); err != nil {
				return err
			}
		}
	}
}

// capacityHistory adds the events of one response. A response with an invalid value is left out.
func (im *importer) capacityHistory(h *capacityHistory) error {
	events, err := h.prices()
	if err != nil {
		return err
	}
	band, err := h.band()
	if err != nil {
		return err
	}
	if band != nil {
		im.warn(sharesAreModelled)
		events = append(events, *band)
	}
	if len(events) == 0 {
		return errors.New("it has neither prices nor preemption rates")
	}
	zones, err := h.zones()
	if err != nil {
		return err
	}
	for _, zone := range zones {
		number, err := im.market("", catalog.GCP, nil, []byte(zone), []byte(h.MachineType), nil)
		if err != nil {
			return err
		}
		for _, e := range events {
			e.market = number
			im.add(e)
		}
	}
	return nil
}

// zones returns the zone of a response, or the zones of its region.
func (h *capacityHistory) zones() ([]string, error) {
	parts := strings.Split(strings.TrimRight(h.Location, "/"), "/")
	name, kind := parts[len(parts)-1], ""
	if len(parts) > 1 {
		kind = parts[len(parts)-2]
	}
	zones := catalog.Zones(catalog.GCP, name)
	switch {
	case kind == "zones":
		return []string{name}, nil
	case kind == "regions" && len(zones) > 0:
		return zones, nil
	}
	return nil, fmt.Errorf("location %q is neither zones/ZONE nor regions/REGION of a known region", h.Location)
}

// prices returns the events of the prices. The last one repeats its price at the end of its interval,
// up to which it is known.
func (h *capacityHistory) prices() (events []event, err error) {
	last := event{}
	for i := range h.Prices {
		p := &h.Prices[i]
		if p.Price.Currency != "USD" {
			return nil, fmt.Errorf("a price is in %q, not in USD", p.Price.Currency)
		}
		units, err := numberOr0(p.Price.Units)
		nanos, err2 := numberOr0(p.Price.Nanos)
		dollars := units + nanos/1e9
		if err != nil || err2 != nil || !(dollars > 0 && dollars < 1e5) || p.Interval.Start.Unix() <= 0 {
			return nil, fmt.Errorf("a price is %q and %q billionths from %v on", p.Price.Units, p.Price.Nanos, p.Interval.Start)
		}
		e := event{says: saysSpot, spot: policy.Dollars(dollars), at: policy.TimeOf(p.Interval.Start)}
		events = append(events, e)
		if end := policy.TimeOf(p.Interval.End); end > last.at && end > e.at {
			last = e
			last.at = end
		}
	}
	if last.at > 0 && last.at < trace.TimeMax {
		for i := range events {
			if events[i].at >= last.at {
				return events, nil
			}
		}
		events = append(events, last)
	}
	return events, nil
}

// numberOr0 returns a number, or 0 if it is missing.
func numberOr0(n json.Number) (float64, error) {
	if n == "" {
		return 0, nil
	}
	return n.Float64()
}

// bandLimits are the shares at which the interruption bands that AWS publishes end.
var bandLimits = [policy.BandCount - 1]float64{0.05, 0.10, 0.15, 0.20}

// band returns the event of the interruption band that corresponds to the mean preemption rate, from
// the first day on, or nil if the response has no rate.
func (h *capacityHistory) band() (*event, error) {
	if len(h.Preemptions) == 0 {
		return nil, nil
	}
	sum, first := 0.0, trace.TimeMax
	for _, p := range h.Preemptions {
		rate := 0.0
		if p.Rate != nil {
			rate = *p.Rate
		}
		if !(rate >= 0 && rate <= 1) || p.Interval.Start.Unix() <= 0 {
			return nil, fmt.Errorf("a preemption rate is %v from %v on", rate, p.Interval.Start)
		}
		sum, first = sum+rate, min(first, policy.TimeOf(p.Interval.Start))
	}
	mean, band := sum/float64(len(h.Preemptions)), int8(0)
	for int(band) < len(bandLimits) && mean >= bandLimits[band] {
		band++
	}
	return &event{says: saysBand, band: band, at: first}, nil
}
