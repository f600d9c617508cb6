package market

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// record writes a trace of one market in Ireland whose prices came hour by hour from
// an instant on, and which was recorded until the last.
func record(t *testing.T, dir string, from time.Time, prices ...float64) {
	t.Helper()
	recordIn(t, "eu-west-1", dir, from, prices...)
}

func recordIn(t *testing.T, region, dir string, from time.Time, prices ...float64) {
	t.Helper()
	s := trace.Series{Provider: "aws", Region: region, Zone: "euw1-az3", Type: "m5.large"}
	for k, p := range prices {
		s.At = append(s.At, policy.TimeOf(from.Add(time.Duration(k)*time.Hour)))
		s.Spot = append(s.Spot, policy.Dollars(p))
		s.OnDemand = append(s.OnDemand, policy.Dollars(0.11))
		s.Score = append(s.Score, 6)
	}
	tr, err := trace.New("test", []trace.Series{s})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "provider=aws", "region="+region)); err != nil {
		t.Fatal(err)
	}
	if err := trace.Write(dir, tr); err != nil {
		t.Fatal(err)
	}
}

// A folder is read when it grows, and only then; its markets are known up to the end
// of the recording, whenever it is looked at.
func TestFolderIsReadWhenItGrows(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, noon.Add(-2*time.Hour), 0.03, 0.04)
	f, err := NewFolder(FolderConfig{Path: dir, Every: time.Minute, Zones: []Zone{{"aws", "eu-west-1", "eu-west-1a", "euw1-az3"}}})
	if err != nil {
		t.Fatal(err)
	}
	d := newBookFixture(t, func(c *Config) { c.Feeds = []Feed{f} })
	look := func() *policy.Market {
		t.Helper()
		if err := d.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		return marketOf(t, d.fill(t), m5a)
	}
	if m := look(); !m.Offered || m.Price != policy.Dollars(0.04) || m.OnDemand != policy.Dollars(0.11) ||
		m.PlacementScore != 6 || len(m.History) != 13 {
		t.Errorf("%+v", m)
	}
	d.clock.Step(61 * time.Minute)
	if m := look(); m.Offered || m.Price != policy.Dollars(0.04) {
		t.Errorf("two hours after the end of the recording: %+v", m)
	}
	if got, want := d.fill(t).Sources[0], (policy.Source{Name: "trace", Prices: true, At: policy.TimeOf(noon.Add(-time.Hour))}); got != want {
		t.Errorf("source %+v, want %+v", got, want)
	}
	record(t, dir, noon.Add(-2*time.Hour), 0.03, 0.04, 0.05, 0.06)
	if m := look(); !m.Offered || m.Price != policy.Dollars(0.06) || m.PricedAt != policy.TimeOf(noon.Add(time.Hour)) {
		t.Errorf("after it grew: %+v", m)
	}
}

// Each region of a folder is as old as its own recording.
func TestFolderOfTwoRegions(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	record(t, dir, noon.Add(-2*time.Hour), 0.03, 0.04)
	recordIn(t, "us-east-1", other, noon.Add(-6*time.Hour), 0.03, 0.04)
	if err := os.Rename(filepath.Join(other, "provider=aws", "region=us-east-1"),
		filepath.Join(dir, "provider=aws", "region=us-east-1")); err != nil {
		t.Fatal(err)
	}
	f, err := NewFolder(FolderConfig{Path: dir, Every: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	d := newBookFixture(t, func(c *Config) { c.Feeds = []Feed{f} })
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := d.fill(t)
	if fresh, old := marketOf(t, s, "aws/eu-west-1/euw1-az3/m5.large/spot"), marketOf(t, s,
		"aws/us-east-1/euw1-az3/m5.large/spot"); !fresh.Offered || old.Offered {
		t.Errorf("offered %v where it was recorded until an hour ago, and %v where until five", fresh.Offered, old.Offered)
	}
}

// A folder that ended long ago reports prices of which none is offered; one that is not
// there, or whose file cannot be read, is an error that names it.
func TestFolderThatIsOldOrBroken(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, noon.Add(-2000*time.Hour), 0.03, 0.04)
	f, err := NewFolder(FolderConfig{Path: dir, Every: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	d := newBookFixture(t, func(c *Config) { c.Feeds = []Feed{f} })
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := marketOf(t, d.fill(t), "aws/eu-west-1/euw1-az3/m5.large/spot"); m.Offered || m.Price != policy.Dollars(0.04) {
		t.Errorf("%+v", m)
	}
	if err := os.WriteFile(filepath.Join(dir, "provider=aws", "region=eu-west-1", "bad.parquet"), []byte("PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Refresh(t.Context()); err == nil {
		t.Error("a file that cannot be read is no error")
	}
	d.NameZone(Zone{"aws", "eu-west-1", "eu-west-1a", "euw1-az3"}) // as a node shows
	d.NameZone(Zone{Provider: "aws", ID: "euw1-az3"})
	if m := marketOf(t, d.fill(t), m5a); m.Price != policy.Dollars(0.04) {
		t.Errorf("%+v", m)
	}
	for _, c := range []FolderConfig{{Path: filepath.Join(dir, "none"), Every: time.Minute}, {Path: dir}} {
		if _, err := NewFolder(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
}
