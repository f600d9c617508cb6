package input

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/internal/objects/objectstest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

var january = policy.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// common returns the first types of the catalog that a pool buys without asking for more.
func common(n int) (all []string) {
	for _, name := range catalog.Types(catalog.AWS) {
		if t, _ := catalog.Lookup(catalog.AWS, name); t.Arch == "amd64" && t.VCPU >= 2 && t.Capacity.GPU == 0 &&
			!strings.Contains(name, "metal") && len(all) < n {
			all = append(all, name)
		}
	}
	return all
}

// world makes prices of the given numbers of regions, types and days, in two zones each.
func world(t *testing.T, regions, types, days int) *trace.Trace {
	t.Helper()
	var all []trace.Series
	for _, region := range catalog.Regions(catalog.AWS)[:regions] {
		for _, kind := range common(types) {
			for _, zone := range []string{"a", "b"} {
				s := trace.Series{Provider: catalog.AWS, Region: region, Zone: region + zone, Type: kind}
				key := chance.New(1, "world", s.Name())
				for i := range days * 24 {
					s.At = append(s.At, january.Add(time.Duration(i)*time.Hour+time.Duration(key.At2(0, uint64(i)).IntN(3000))*time.Second))
					s.Spot = append(s.Spot, policy.Money(30_000+key.At2(1, uint64(i)).IntN(500)*100))
					s.OnDemand = append(s.OnDemand, 100_000)
				}
				all = append(all, s)
			}
		}
	}
	tr, err := trace.New("world", all)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// shop is a scenario with a pool of one region and family.
func shop(t *testing.T, markets string) *scenarios.Scenario {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.yaml")
	text := fmt.Sprintf(`apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: shop}
spec: {duration: 48h, warmUp: 24h}
---
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: general}
spec:
  backend: {karpenter: {nodeClassName: default}}
  markets: %s
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, resources: {requests: {cpu: 500m, memory: 512Mi}}}]}
`, markets)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	sc, err := LoadScenario(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// bindTo binds sc to its second window on the trace at path.
func bindTo(t *testing.T, sc *scenarios.Scenario, path string) (*scenarios.BoundScenario, error) {
	t.Helper()
	var m MarketFlags
	m.Register(pflag.NewFlagSet("test", pflag.ContinueOnError))
	m.Trace = path
	return m.Bind(sc, Traces{}, 1)
}

// put copies a folder to an object store.
func put(t *testing.T, dir, prefix string) {
	t.Helper()
	var store objects.Store
	found, err := store.List(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range found {
		data, err := os.ReadFile(x.Name)
		if err == nil {
			err = store.Create(t.Context(), objects.Join(prefix, filepath.ToSlash(strings.TrimPrefix(x.Name, dir))), func(w io.Writer) error {
				_, err := w.Write(data)
				return err
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A run on a compact trace, on disk or in a bucket, is that on the whole, hash included.
func TestPartIsBoundAsTheWhole(t *testing.T) {
	dir := t.TempDir()
	whole, compact := filepath.Join(dir, "whole"), filepath.Join(dir, "compact")
	if err := trace.Write(whole, world(t, 3, 40, 8)); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Compact(t.Context(), whole, nil, compact); err != nil {
		t.Fatal(err)
	}
	objectstest.Use(t, objectstest.Serve(t, nil, "traces"))
	put(t, compact, "s3://traces/compact")
	region, kind := catalog.Regions(catalog.AWS)[1], common(4)[3]
	const second = "\n---\napiVersion: spotter.dev/v1alpha1\nkind: CapacityPool\nmetadata: {name: second}\n" +
		"spec: {backend: {karpenter: {nodeClassName: default}}}"
	for _, markets := range []string{
		"{}", fmt.Sprintf("{regions: [%s]}", region), fmt.Sprintf("{instanceTypes: [%s]}", kind),
		fmt.Sprintf("{zones: [%sb], minVCPU: 2, maxVCPU: 16}", region), fmt.Sprintf("{regions: [%s]}", region) + second,
	} {
		sc := shop(t, markets)
		want, err := bindTo(t, sc, whole)
		if err != nil {
			t.Fatalf("%s: %v", markets, err)
		}
		for _, path := range []string{compact, compact + "/", "s3://traces/compact"} {
			got, err := bindTo(t, sc, path)
			if err != nil {
				t.Fatalf("%s on %s: %v", markets, path, err)
			}
			if b := got.Trace.Traffic; b.Read == 0 || b.Stored == 0 {
				t.Errorf("%s on %s: read %+v", markets, path, b)
			}
			if got.TraceDigest != want.TraceDigest || !reflect.DeepEqual(got.Types, want.Types) || !reflect.DeepEqual(got.Pools, want.Pools) ||
				len(got.Markets) != len(want.Markets) || got.Trace.From != want.Trace.From || got.Trace.To != want.Trace.To {
				t.Errorf("%s on %s: %d markets of %d", markets, path, len(got.Markets), len(want.Markets))
				continue
			}
			for i := range want.Prices {
				a, b := got.Prices[i], want.Prices[i]
				// The first price, in force at the start, may have another timestamp.
				if got.Markets[i].Name != want.Markets[i].Name || got.Markets[i].Price != want.Markets[i].Price ||
					!reflect.DeepEqual(a.Price, b.Price) || !reflect.DeepEqual(a.At[1:], b.At[1:]) {
					t.Fatalf("%s on %s: %s has %v, not %v", markets, path, want.Markets[i].Name, a, b)
				}
			}
		}
	}
	for _, markets := range []string{"{instanceTypes: [z1d.metal]}",
		fmt.Sprintf("{regions: [%s], instanceTypes: [z1d.metal]}", region) + second} {
		for _, path := range []string{whole, compact} {
			if _, err := bindTo(t, shop(t, markets), path); !errors.Is(err, scenarios.ErrNoMarket) {
				t.Errorf("a pool without markets on %s: %v", path, err)
			}
		}
	}
	for _, path := range []string{"s3://traces/nothing", "s3://none/at/all"} {
		if _, err := bindTo(t, shop(t, "{}"), path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}

// The evaluation of one pool reads no more than a hundredth of the bytes of thirty regions
// of two hundred markets.
func TestOnePoolReadsLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a million rows")
	}
	dir := t.TempDir()
	if err := trace.WriteFile(filepath.Join(dir, "world.parquet"), world(t, 30, 100, 8)); err != nil {
		t.Fatal(err)
	}
	compact := filepath.Join(dir, "compact")
	if _, err := trace.Compact(t.Context(), filepath.Join(dir, "world.parquet"), nil, compact); err != nil {
		t.Fatal(err)
	}
	region, kinds := catalog.Regions(catalog.AWS)[7], common(6)[3:]
	w, err := bindTo(t, shop(t, fmt.Sprintf("{zones: [%sb], regions: [%s], instanceTypes: [%s]}", region, region,
		strings.Join(kinds, ", "))), compact)
	if err != nil || len(w.Markets) != 2*len(kinds) {
		t.Fatalf("%+v, %v", w, err)
	}
	b := w.Trace.Traffic
	if b.Stored < 1<<20 || b.Read*100 > b.Stored {
		t.Errorf("read %d of %d bytes", b.Read, b.Stored)
	}
	t.Logf("read %d of %d bytes", b.Read, b.Stored)
}
