package market

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// fullUpdate reports some of everything.
func fullUpdate() Update {
	return Update{
		Zones: []Zone{{"aws", "eu-west-1", "eu-west-1a", "euw1-az3"}},
		Types: []policy.InstanceType{{Provider: "aws", Name: "zz9.large", Family: "zz9", Category: "zz", VCPU: 2,
			Allocatable: policy.Resources{CPU: 1900, Memory: 1 << 30, Pods: 10}}},
		Offerings: []Offering{{"aws", "eu-west-1", "eu-west-1c", "m5.large"}},
		Spot: []Price{
			spot("eu-west-1a", "m5.large", noon.Add(-time.Hour), 0.04), spot("euw1-az3", "m5.large", noon,
				0.05), spot("eu-west-1a", "zz9.large", noon, 0.05),
		},
		OnDemand: []OnDemandPrice{{Provider: "aws", Region: "eu-west-1", Type: "zz9.large", Price: policy.Dollars(0.2), Modelled: true},
			{Provider: "aws", Region: "eu-west-1", Type: "m5.large", Price: policy.Dollars(0.11)}},
		Bands:  []PublishedBand{{"aws", "eu-west-1", "m5.large", 3}},
		Scores: []PublishedScore{{"aws", "eu-west-1", "euw1-az3", "m5.large", 8}},
	}
}

// A book that is rebuilt from its cache fills the same snapshot, queries its feeds from where they
// were, and not before their time.
func TestCacheSurvivesARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "markets")
	d := newBookFixture(t, func(c *Config) { c.Cache = file })
	d.report(t, fullUpdate())
	if len(d.fill(t).Markets) != 5 {
		t.Fatal("not all markets are there")
	}
	d.clock.Step(2 * time.Minute)
	if err := d.save(); err != nil {
		t.Fatal(err)
	}
	next := newBookFixture(t, func(c *Config) { c.Cache = file })
	next.clock.SetTime(d.clock.Now())
	if want, got := d.fill(t), next.fill(t); !reflect.DeepEqual(got, want) {
		t.Errorf("after the restart\n%+v, want\n%+v", got, want)
	}
	if wait := next.feeds.due(0); wait != 3*time.Minute {
		t.Errorf("the feed is read in %v, want 3 m of the 5 that remain", wait)
	}
	if err := next.feeds.read(t.Context(), 0); err == nil || next.asked[0].Since != policy.TimeOf(noon) {
		t.Errorf("asked %+v", next.asked)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.save(); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(file); err != nil || string(first) != string(second) {
		t.Errorf("the same knowledge is written differently: %v", err)
	}
}

// A cache that is cut short, foreign, of a later version or not a file makes a new book, not an
// error: what it held can be requested again.
func TestCacheThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	d := newBookFixture(t, func(c *Config) { c.Cache = good })
	d.report(t, fullUpdate())
	d.clock.Step(24 * time.Hour)
	if err := d.save(); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"empty": {}, "text": []byte("prices"), "half": body[:len(body)/2], "future": body} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		next := newBookFixture(t, func(c *Config) { c.Cache = file })
		if n := len(next.fill(t).Markets); n != 0 || next.feeds.due(0) != 0 {
			t.Errorf("%s: %d markets, next reading in %v", name, n, next.feeds.due(0))
		}
		next.report(t, fullUpdate())
		if n := len(next.fill(t).Markets); n != 5 {
			t.Errorf("%s: %d markets afterwards", name, n)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	next := newBookFixture(t, func(c *Config) { c.Cache = filepath.Join(dir, "folder") })
	next.report(t, fullUpdate())
	if err := next.save(); err == nil {
		t.Error("a cache was written over a folder")
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.new")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
