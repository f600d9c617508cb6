package aws_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/aws"
	"github.com/spotter-dev/spotter/live/aws/fake"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// visible returns what can be seen of a state at an instant.
func visible(state *fake.State, now time.Time) *fake.State {
	seen := &fake.State{Regions: map[string]*fake.Region{}}
	for name, r := range state.Regions {
		c := *r
		c.Events = slices.DeleteFunc(slices.Clone(r.Events), func(e fake.Event) bool { return e.Published.After(now) })
		seen.Regions[name] = &c
	}
	return seen
}

// Faults that a user can fix are distinguished.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		want   error
		text   string
		faults fake.Faults
		change func(c *aws.Config)
	}{
		{"history", aws.ErrPermission, "ec2:DescribeSpotPriceHistory in eu-west-1",
			fake.Faults{Deny: map[string]string{"DescribeSpotPriceHistory": "UnauthorizedOperation"}}, nil},
		{"expired", aws.ErrExpired, "ExpiredToken", fake.Faults{Deny: map[string]string{"DescribeSpotPriceHistory": "ExpiredToken"}}, nil},
		{"refused", aws.ErrCredentials, "AuthFailure", fake.Faults{Deny: map[string]string{"DescribeAvailabilityZones": "AuthFailure"}}, nil},
		{"refused for good", aws.ErrRefused, "InvalidParameterCombination",
			fake.Faults{Deny: map[string]string{"DescribeSpotPriceHistory": "InvalidParameterCombination"}}, nil},
		{"region not enabled", aws.ErrRegion, "OptInRequired",
			fake.Faults{Deny: map[string]string{"DescribeAvailabilityZones": "OptInRequired"}}, nil},
		{"nobody there", aws.ErrUnreachable, "connection refused", fake.Faults{}, func(c *aws.Config) { c.Endpoint = "http://127.0.0.1:1" }},
		{"throttled for ever", aws.ErrTimeout, "time limit was reached", fake.Faults{Throttle: 1},
			func(c *aws.Config) { c.Timeout = 300 * time.Millisecond }},
		{"never whole", aws.ErrUnreachable, "truncated", fake.Faults{Empty: 1}, nil},
		{"no such type", aws.ErrNothing, "z9", fake.Faults{}, func(c *aws.Config) { c.Families = []string{"z9"} }},
		{"bad region", aws.ErrConfig, `region "us_east"`, fake.Faults{}, func(c *aws.Config) { c.Regions = []string{"us_east"} }},
		{"bad days", aws.ErrConfig, "days 91", fake.Faults{}, func(c *aws.Config) { c.Days = 91 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, url := serve(t, draw(2, 2), c.faults)
			dir := filepath.Join(t.TempDir(), "trace")
			settings := settingsOf(dir, url, end, 1)
			if c.change != nil {
				c.change(&settings)
			}
			r, err := aws.New(settings)
			if err == nil {
				_, err = r.Record(t.Context())
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("error %v, want %v with %q", err, c.want, c.text)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("a folder without prices is left")
			}
		})
	}
}

// A recording continues without the data other than prices that it may not or cannot fetch, and
// reports it.
func TestWithout(t *testing.T) {
	t.Parallel()
	state := draw(29, 3)
	_, url := serve(t, state, fake.Faults{Deny: map[string]string{
		"GetProducts": "AccessDeniedException", "GetSpotPlacementScores": "UnauthorizedOperation",
	}})
	dir := t.TempDir()
	c := settingsOf(dir, url, end, 1)
	c.AdvisorURL = "http://127.0.0.1:1"
	var said []string
	c.Warn = func(text string) { said = append(said, text) }
	record(t, c)
	for _, want := range []string{"pricing:GetProducts in us-east-1: no permission",
		"ec2:GetSpotPlacementScores in eu-west-1: no permission", "not reachable"} {
		if !strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("nothing says %q: %q", want, said)
		}
	}
	compare(t, prices(open(t, dir)), truth(state, fake.Linux, end.Add(-24*time.Hour), end))
}

// A server that answers for prices alone is recorded all the same. Zones then
// go by the IDs that come with the prices, and else by name.
func TestPricesOnly(t *testing.T) {
	t.Parallel()
	state := draw(41, 2)
	for _, noIDs := range []bool{false, true} {
		server, url := serve(t, state, fake.Faults{PricesOnly: true, NoZoneIDs: noIDs, PageMax: 20})
		dir := t.TempDir()
		c := settingsOf(dir, url, end, 1)
		var said []string
		c.Warn = func(text string) { said = append(said, text) }
		record(t, c)
		want := truth(state, fake.Linux, end.Add(-24*time.Hour), end)
		if noIDs {
			want = named(state, want)
		}
		compare(t, prices(open(t, dir)), want)
		if byName := strings.Contains(strings.Join(said, "\n"), "identified by name"); byName != noIDs {
			t.Errorf("without IDs %v: %q", noIDs, said)
		}
		asked := 0
		for _, call := range server.Calls() {
			if call.Action != "DescribeSpotPriceHistory" {
				asked++
			}
		}
		if asked > 10 {
			t.Errorf("%d requests of what was refused", asked)
		}
		if s := record(t, c); s.Files != 0 {
			t.Errorf("%d files written again", s.Files)
		}
	}
}

// named replaces the IDs of zones by names.
func named(state *fake.State, rows map[string][]string) map[string][]string {
	all := map[string][]string{}
	for key, v := range rows {
		for _, r := range state.Regions {
			for _, z := range r.Zones {
				key = strings.ReplaceAll(key, "/"+z.ID+"/", "/"+z.Name+"/")
			}
		}
		all[key] = v
	}
	return all
}

// Zones that cannot be listed for now are no reason to name them otherwise: the
// prices are kept until they can.
func TestZonesDown(t *testing.T) {
	t.Parallel()
	state := draw(43, 2)
	server, url := serve(t, state, fake.Faults{ZonesDown: true, NoZoneIDs: true})
	dir := t.TempDir()
	c := settingsOf(dir, url, end, 1)
	r, err := aws.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Record(t.Context()); !errors.Is(err, aws.ErrZones) {
		t.Fatalf("error %v, want %v", err, aws.ErrZones)
	}
	server.SetFaults(fake.Faults{NoZoneIDs: true})
	before := len(server.Calls())
	record(t, c)
	compare(t, prices(open(t, dir)), truth(state, fake.Linux, end.Add(-24*time.Hour), end))
	for _, call := range server.Calls()[before:] {
		if call.Action == "DescribeSpotPriceHistory" {
			t.Error("prices were asked for again")
		}
	}
}

// The quota of placement scores counts configurations over a day, however many recordings request
// them.
func TestScoreQuota(t *testing.T) {
	t.Parallel()
	server, url := serve(t, draw(17, 4), fake.Faults{ScoresMax: 5})
	dir := t.TempDir()
	asked := func(now time.Time, most int) int {
		before := len(server.Calls())
		c := settingsOf(dir, url, now, 1)
		c.ScoresMax = most
		record(t, c)
		n := 0
		for _, call := range server.Calls()[before:] {
			if call.Action == "GetSpotPlacementScores" {
				n++
			}
		}
		return n
	}
	for i, c := range []struct {
		after      time.Duration
		most, want int
	}{
		{0, 4, 4},              // of six: three types in two regions
		{time.Hour, 4, 4},      // the same ones again
		{2 * time.Hour, 9, 6},  // the fifth and the sixth are new; AWS refuses that one
		{25 * time.Hour, 2, 2}, // only what was new within a day counts
	} {
		if n := asked(end.Add(c.after-30*time.Hour), c.most); n != c.want {
			t.Errorf("call %d asked for %d scores, want %d", i+1, n, c.want)
		}
	}
}

// An unfinished recording of something else is not mixed with this one.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	server, url := serve(t, draw(19, 4), fake.Faults{Deny: map[string]string{"GetSpotPlacementScores": "ExpiredToken"}})
	dir := t.TempDir()
	c := settingsOf(dir, url, end, 2)
	r, err := aws.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Record(t.Context()); !errors.Is(err, aws.ErrExpired) {
		t.Fatal(err)
	}
	other := c
	other.Families = []string{"m5"}
	if r, err = aws.New(other); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Record(t.Context()); !errors.Is(err, aws.ErrUnfinished) || !strings.Contains(err.Error(), "--families c6i,m5,p3") {
		t.Errorf("another plan was taken for the one begun: %v", err)
	}
	// Later it is finished with its own span and without asking for the prices
	// again, nor for scores, which by now are others.
	server.SetFaults(fake.Faults{})
	before := len(server.Calls())
	c.Now = func() time.Time { return end.Add(2 * time.Hour) }
	s := record(t, c)
	if !s.Resumed || s.Until != policy.TimeOf(end) {
		t.Errorf("not resumed: %+v", s)
	}
	if n := len(server.Calls()) - before; n != 0 {
		t.Errorf("%d requests to finish what was all there", n)
	}
}

// A folder that holds anything but the recorder's own files is left alone.
func TestForeignFolder(t *testing.T) {
	t.Parallel()
	_, url := serve(t, draw(23, 2), fake.Faults{})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	imported := t.TempDir()
	tr, err := trace.New("x", []trace.Series{{
		Provider: "aws", Region: regions[0], Zone: "euw1-az1", Type: "m5.large",
		At: []policy.Time{policy.TimeOf(end)}, Spot: []policy.Money{policy.Dollar},
	}})
	if err == nil {
		err = trace.Write(imported, tr)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, imported} {
		before := hash(t, d)
		r, err := aws.New(settingsOf(d, url, end, 1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Record(t.Context()); !errors.Is(err, aws.ErrFolder) {
			t.Errorf("error %v, want %v", err, aws.ErrFolder)
		}
		os.RemoveAll(filepath.Join(d, ".record"))
		if hash(t, d) != before {
			t.Error("the folder was changed")
		}
	}
}
