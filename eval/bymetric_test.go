package eval

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestValuesJSON: what is known of a run is read as it was written, and nothing else is.
func TestValuesJSON(t *testing.T) {
	want := make(Values, len(metrics))
	for m := range metrics {
		want[m] = Value{float64(m) / 8, m%3 > 0}
		if metrics[m].YesNo() {
			want[m] = Value{1, true}
		}
		if !want[m].Known {
			want[m] = Value{}
		}
	}
	text, err := json.Marshal(want)
	if err != nil || !strings.Contains(string(text), `"improvement_floored":true`) {
		t.Fatalf("%s, %v", text, err)
	}
	var got Values
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: it is read as %v", err, got)
	}
	if err := json.Unmarshal([]byte(`{"bill_usd": 2, "of_another_build": "x", "outage_delta": null}`),
		&got); err != nil || got.Of("bill_usd") != (Value{2, true}) || got.Of("outage_delta").Known {
		t.Errorf("%v: with a name that is no metric it is %v", err, got)
	}
	if err := json.Unmarshal([]byte(`{"bill_usd": "2"}`), &got); err == nil || !strings.Contains(err.Error(), "bill_usd") {
		t.Errorf("a text for a number gives %v", err)
	}
	if v := Values(nil).Of("bill_usd"); v.Known {
		t.Errorf("without values the bill is %v", v)
	}
}

// TestUnknownJSON: figures that are unknown are left out, and 0 is not.
func TestUnknownJSON(t *testing.T) {
	for _, c := range []struct {
		of   any
		want string
	}{
		{Summary{}, `{"n":0}`},
		{[]Value{{}, {0, true}}, `[null,0]`},
		{Figure{}, `null`},
		{WhatIfRow{Variant: Variant{Name: "x"}},
			`{"name":"x","policy":"","cost_usd_per_month":null,"outage_cost_usd_per_month":null,"outage_incidents":null,"outage_minutes":null,"outage_spot_minutes":null,"evictions_per_pod_day":null,"nodes":null,"spot_share":null}`},
		{StressCell{Truth: "alone", Outage: Value{0, true}}, `{"truth":"alone","outage_minutes":0,"missing":0}`},
		{Change{Policy: "spot", Missing: 2},
			`{"scenario":"","policy":"spot","verdict":"","units":0,"over":"","pairs":0,"changed":0,"missing":2,"net_savings_points":{},"outage_cost_points":{}}`},
	} {
		if got, err := json.Marshal(c.of); err != nil || string(got) != c.want {
			t.Errorf("%T is %s, %v; want %s", c.of, got, err, c.want)
		}
	}
	s, err := json.Marshal(Summarize([][]float64{{0, 0}, {0}}, 0))
	if err != nil || !strings.Contains(string(s), `"mean":0,`) || !strings.Contains(string(s), `"window_min":0,`) {
		t.Errorf("a summary of zeros is %s, %v", s, err)
	}
	c, err := json.Marshal(Change{Pairs: 1})
	if err != nil || !strings.Contains(string(c), `"net_savings_points":{"mean":0`) ||
		!strings.Contains(string(c), `"net_savings_usd_per_week":0`) {
		t.Errorf("a change of nothing is %s, %v", c, err)
	}
}
