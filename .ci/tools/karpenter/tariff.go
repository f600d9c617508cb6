package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// A spell is a time from which a price holds, in milliseconds since 1970 and in
// millionths of a dollar for an hour.
type spell struct {
	At    int64 `json:"at"`
	Price int64 `json:"price"`
}

// A tariff is what markets cost over time, by name. The empty one leaves prices as
// they are.
type tariff map[string][]spell

// newTariff reads a file of prices; without a name nothing is in it.
func newTariff(file string) (tariff, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("PRICES_FILE: %w", err)
	}
	var t tariff
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, fmt.Errorf("PRICES_FILE %s: %w", file, err)
	}
	for name, spells := range t {
		ascending := slices.IsSortedFunc(spells, func(a, b spell) int { return int(a.At - b.At) })
		cheap := slices.ContainsFunc(spells, func(s spell) bool { return s.Price <= 0 })
		if len(spells) == 0 || !ascending || cheap {
			return nil, fmt.Errorf("PRICES_FILE %s: %s: %v: want prices above 0, ascending by time", file, name, spells)
		}
	}
	return t, nil
}

// at returns what a market costs at an instant in dollars an hour, or otherwise where
// the tariff does not know it. The first price holds before its time too.
func (t tariff) at(name string, now time.Time, otherwise float64) float64 {
	spells := t[name]
	if len(spells) == 0 {
		return otherwise
	}
	i, found := slices.BinarySearchFunc(spells, now.UnixMilli(), func(s spell, at int64) int { return int(s.At - at) })
	if !found {
		i--
	}
	return float64(spells[max(i, 0)].Price) / 1e6
}

// price returns types at the prices of now. What it is given stays as it is.
func (t tariff) price(types []*cloudprovider.InstanceType) []*cloudprovider.InstanceType {
	if len(t) == 0 {
		return types
	}
	now := time.Now()
	out := make([]*cloudprovider.InstanceType, 0, len(types))
	for _, x := range types {
		copied := &cloudprovider.InstanceType{Name: x.Name, Requirements: x.Requirements, Capacity: x.Capacity,
			Overhead: x.Overhead}
		for _, o := range x.Offerings {
			y := *o
			y.Price = t.at(marketOf(x, o).name(), now, o.Price)
			copied.Offerings = append(copied.Offerings, &y)
		}
		out = append(out, copied)
	}
	return out
}
