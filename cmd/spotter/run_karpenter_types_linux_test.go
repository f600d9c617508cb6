package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// soldTypes are the instance types that Karpenter knows, all in three zones.
var soldTypes = []string{"c5.large", "c5.xlarge", "m5.large", "m5.xlarge", "r5.large"}

// oneEach are those of two vCPUs, on which one pod of deploy fits: a share of them is
// one of nodes.
var oneEach = []string{"c5.large", "m5.large", "r5.large"}

var soldZones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}

// spotPrice returns what a type costs as spot in a zone: about a third.
func spotPrice(kind, zone string) float64 {
	onDemand, _ := catalog.OnDemand(catalog.AWS, "us-east-1", kind)
	return onDemand.Float() * (0.30 + 0.02*float64(slices.Index(soldZones, zone)) + 0.01*float64(slices.Index(soldTypes, kind)))
}

// importPrices makes a trace of the last hours, as a user does who has recorded them.
func (p *plant) importPrices(t *testing.T) {
	t.Helper()
	type price struct {
		AvailabilityZone, InstanceType, ProductDescription, SpotPrice string
		Timestamp                                                     time.Time
	}
	var history struct{ SpotPriceHistory []price }
	now := time.Now().UTC().Truncate(time.Second)
	for _, kind := range soldTypes {
		for _, zone := range soldZones {
			for age := 6 * time.Hour; age >= 0; age -= time.Hour {
				moved := spotPrice(kind, zone) * (1 + 0.01*age.Hours())
				history.SpotPriceHistory = append(history.SpotPriceHistory, price{zone, kind, "Linux/UNIX", fmt.Sprintf("%.6f", moved), now.Add(-age)})
			}
		}
	}
	text, err := json.Marshal(history)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "history.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p.trace = filepath.Join(t.TempDir(), "prices")
	p.spotter(t, "trace", "import", file, "--out", p.trace)
}

// writeTypes writes what Karpenter's provider sells.
func writeTypes(t *testing.T) string {
	t.Helper()
	var all []any
	for _, kind := range soldTypes {
		x, ok := catalog.Lookup(catalog.AWS, kind)
		onDemand, priced := catalog.OnDemand(catalog.AWS, "us-east-1", kind)
		if !ok || !priced {
			t.Fatalf("the catalog does not know %s", kind)
		}
		var offers []any
		for _, zone := range soldZones {
			for capacity, price := range map[string]float64{"spot": spotPrice(kind, zone), "on-demand": onDemand.Float()} {
				offers = append(offers, map[string]any{"Price": price, "Available": true, "Requirements": []any{
					map[string]any{"key": karpv1.CapacityTypeLabelKey, "operator": "In", "values": []string{capacity}},
					map[string]any{"key": corev1.LabelTopologyZone, "operator": "In", "values": []string{zone}},
				}})
			}
		}
		all = append(all, map[string]any{
			"name": kind, "offerings": offers, "architecture": "amd64", "operatingSystems": []string{"linux"},
			"resources": map[string]string{
				"cpu": fmt.Sprint(x.VCPU), "memory": fmt.Sprint(x.Capacity.Memory), "ephemeral-storage": "80Gi", "pods": "29",
			},
		})
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "types.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
