package market

import (
	"fmt"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// large returns a bookFixture with the given number of markets, half Spot and half on-demand.
func large(tb testing.TB, markets int) *bookFixture {
	tb.Helper()
	d := newBookFixture(tb, nil)
	types := catalog.Types(catalog.AWS)
	var u Update
	for k := 0; len(u.Spot) < markets/2; k++ {
		kind, zone := types[k%len(types)], fmt.Sprintf("us-east-1%c", 'a'+k/len(types))
		price, ok := catalog.OnDemand(catalog.AWS, "us-east-1", kind)
		if t, known := catalog.Lookup(catalog.AWS, kind); !ok || !known || t.Allocatable.Memory <= 0 {
			continue
		}
		u.Spot = append(u.Spot, Price{Provider: catalog.AWS, Region: "us-east-1", Zone: zone, Type: kind,
			At: policy.TimeOf(noon.Add(-5 * time.Hour)), Price: price / 3})
	}
	d.report(tb, u)
	if n := len(d.fill(tb).Markets); n != markets {
		tb.Fatalf("%d markets, want %d", n, markets)
	}
	return d
}

// BenchmarkFill fills a snapshot again and again, ten seconds apart.
func BenchmarkFill(b *testing.B) {
	for _, markets := range []int{300, 12_000} {
		b.Run(fmt.Sprint(markets), func(b *testing.B) {
			d := large(b, markets)
			s := [2]policy.Snapshot{}
			now := d.now()
			d.Fill(&s[0], now)
			d.Fill(&s[1], now)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now = now.Add(10 * time.Second)
				d.Fill(&s[i%2], now)
			}
		})
	}
}

// BenchmarkTabulate rebuilds the tables.
func BenchmarkTabulate(b *testing.B) {
	d := large(b, 12_000)
	b.ReportAllocs()
	for b.Loop() {
		d.tabulate()
	}
}
