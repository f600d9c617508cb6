package generate

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/tracetest"
)

// What is drawn and written in parts is, byte for byte, what is drawn and written at once,
// however long the parts are.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		preset := rapid.SampledFrom(Presets()).Draw(t, "preset")
		markets, err := CatalogMarkets(preset.Law.Provider, catalog.Regions(preset.Law.Provider))
		if err != nil {
			t.Fatal(err)
		}
		c := Config{Seed: rapid.Uint64().Draw(t, "seed"), Law: preset.Law}
		for range rapid.IntRange(1, 4).Draw(t, "markets") {
			at := rapid.IntRange(0, len(markets)-1).Draw(t, "market")
			c.Markets = append(c.Markets, markets[at:min(at+3, len(markets))]...)
			markets = slices.Delete(markets, at, min(at+3, len(markets)))
		}
		c.From = preset.Begin() + policy.Time(rapid.IntRange(0, 30).Draw(t, "hours"))*hour
		c.To = c.From + 1 + policy.Time(rapid.IntRange(0, 9*24).Draw(t, "length"))*hour
		step := rapid.IntRange(1, 4).Draw(t, "days of a part")

		whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
		tr, err := Generate(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := trace.Write(whole, tr); err != nil {
			t.Fatal(err)
		}
		head, drawn, err := c.draws(context.Background(), func(float64) policy.Time { return policy.Time(step) * day })
		if err != nil {
			t.Fatal(err)
		}
		if err := trace.WriteParts(parts, head, drawn); err != nil {
			t.Fatal(err)
		}
		want, got := tracetest.Files(t, whole), tracetest.Files(t, parts)
		if names := slices.Sorted(maps.Keys(want)); !reflect.DeepEqual(names, slices.Sorted(maps.Keys(got))) {
			t.Fatalf("%d files in parts, want %d", len(got), len(want))
		}
		for name, text := range want {
			if got[name] != text {
				t.Fatalf("%s differs", name)
			}
		}
	})
}

// Nothing is left of a trace that is broken off, and what was there before stays.
func TestPartsBrokenOff(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	c := byPreset(t, "aws-2024", 1, 9, 5)
	if err := trace.Write(out, generated(t, c)); err != nil {
		t.Fatal(err)
	}
	before := tracetest.Files(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	c.Seed = 2
	head, parts, err := c.draws(ctx, func(float64) policy.Time { return day })
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = trace.WriteParts(out, head, func(yield func(*trace.Part, error) bool) {
		for part, err := range parts {
			if n++; n == 3 {
				cancel()
			}
			if !yield(part, err) {
				return
			}
		}
	})
	if !errors.Is(err, context.Canceled) || n != 4 {
		t.Errorf("%v after %d parts", err, n)
	}
	if !reflect.DeepEqual(tracetest.Files(t, dir), before) {
		t.Error("something was left or changed")
	}
}

// A part holds about as many prices as there is room for, however long the trace is.
func TestPartsAreBounded(t *testing.T) {
	c := byPreset(t, "aws-auction-2016", 1, 600, 30)
	_, parts, err := Parts(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for part, err := range parts {
		rows := 0
		for i := range part.Series {
			rows += len(part.Series[i].At)
		}
		if n++; err != nil || rows > partRows*5/4 {
			t.Errorf("%d prices from %v to %v, %v", rows, part.From, part.To, err)
		}
	}
	if n < 3 {
		t.Errorf("%d parts", n)
	}
}
