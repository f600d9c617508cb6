package aws_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/aws"
	"github.com/spotter-dev/spotter/live/aws/fake"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// childVariable makes this test binary a recorder that a test can kill. It
// holds the settings of the recording.
const childVariable = "SPOTTER_TEST_RECORDER"

func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "",
	} {
		os.Setenv(name, value)
	}
	if settings := os.Getenv(childVariable); settings != "" {
		child(settings)
	}
	os.Exit(m.Run())
}

// A childJob is what a child process records.
type childJob struct {
	Dir, URL string
	Now      time.Time
	Days     int
}

func child(settings string) {
	var job childJob
	err := json.Unmarshal([]byte(settings), &job)
	if err == nil {
		var r *aws.Recorder
		if r, err = aws.New(settingsOf(job.Dir, job.URL, job.Now, job.Days)); err == nil {
			_, err = r.Record(context.Background())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

var (
	end     = time.Date(2026, 3, 9, 17, 23, 11, 0, time.UTC)
	regions = []string{"eu-west-1", "us-east-1"}
	kinds   = []string{"c6i.xlarge", "m5.large", "p3.2xlarge"}
)

func settingsOf(dir, url string, now time.Time, days int) aws.Config {
	c := aws.DefaultConfig()
	c.Dir, c.Regions, c.Days, c.Endpoint = dir, slices.Clone(regions), days, url
	c.Families = []string{"c6i", "m5", "p3"}
	c.AdvisorURL = url + fake.AdvisorPath
	c.Pace = aws.Pace{PerSecond: 1e5, BackoffMin: 100 * time.Microsecond, BackoffMax: time.Millisecond}
	c.Timeout = time.Minute
	c.Now = func() time.Time { return now }
	return c
}

func draw(seed uint64, days int) *fake.State {
	return fake.Draw(fake.Shape{
		Seed: seed, Regions: regions, Zones: 2, Types: kinds,
		From: end.Add(-time.Duration(days) * 24 * time.Hour), Until: end.Add(24 * time.Hour), PerDay: 4, Repeats: 0.4,
	})
}

// hostile is a server that does all that is known to happen, far more often.
func hostile(seed uint64) fake.Faults {
	return fake.Faults{
		Seed: seed, Throttle: 0.1, Internal: 0.04, Reset: 0.04, Truncate: 0.04, Empty: 0.04,
		Expire: 0.05, Hollow: 0.05, PageMax: 17, Again: 4, Shuffle: true, Strangers: true, NoZoneIDs: seed%2 == 0,
	}
}

func serve(t *testing.T, state *fake.State, faults fake.Faults) (*fake.Server, string) {
	t.Helper()
	s := fake.New(state, faults)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h.URL
}

func record(t *testing.T, c aws.Config) *aws.Summary {
	t.Helper()
	r, err := aws.New(c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t *testing.T, dir string) *trace.Trace {
	t.Helper()
	tr, err := trace.Open(dir, trace.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// truth works out, the slow and plain way, what a recording must hold: for each
// market the price in force at from and every change before until.
func truth(state *fake.State, product string, from, until time.Time) map[string][]string {
	all := map[string][]string{}
	for region, r := range state.Regions {
		for _, z := range r.Zones {
			for _, kind := range kinds {
				var rows []string
				last, before := "", ""
				for _, e := range r.Events {
					if e.Zone != z.Name || e.Type != kind || e.Product != product || !e.At.Before(until) {
						continue
					}
					if !e.At.After(from) {
						before = e.Price
						continue
					}
					if rows == nil && before != "" {
						rows, last = append(rows, row(from, before)), before
					}
					if e.Price != last {
						rows, last = append(rows, row(e.At, e.Price)), e.Price
					}
				}
				if rows == nil && before != "" {
					rows = append(rows, row(from, before))
				}
				if rows != nil {
					all["aws/"+region+"/"+z.ID+"/"+kind] = rows
				}
			}
		}
	}
	return all
}

func row(at time.Time, price string) string {
	v, err := strconv.ParseFloat(price, 64)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%v %v", policy.TimeOf(at), policy.Dollars(v))
}

// prices returns what a trace holds, in the form of truth.
func prices(tr *trace.Trace) map[string][]string {
	all := map[string][]string{}
	for i := range tr.Series {
		s := &tr.Series[i]
		var rows []string
		for k, at := range s.At {
			if k == 0 || s.Spot[k] != s.Spot[k-1] {
				rows = append(rows, fmt.Sprintf("%v %v", at, s.Spot[k]))
			}
		}
		all[s.Name()] = rows
	}
	return all
}

func compare(t *testing.T, got, want map[string][]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d markets, want %d", len(got), len(want))
	}
	for name, rows := range want {
		if !slices.Equal(got[name], rows) {
			t.Errorf("%s:\n got %v\nwant %v", name, got[name], rows)
		}
	}
}

// hash returns a hash of the names and contents of all files.
func hash(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", strings.TrimPrefix(path, dir), len(body), body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// A recording of a server that pages, repeats, shuffles, throttles, fails and
// cuts answers short holds every change once.
func TestNoRowLostOrDoubled(t *testing.T) {
	t.Parallel()
	base := uint64(time.Now().UnixNano())
	for i := range uint64(4) {
		seed := base + i
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			const days = 3
			state := draw(seed, days+1)
			_, url := serve(t, state, hostile(seed))
			dir := filepath.Join(t.TempDir(), "trace")
			s := record(t, settingsOf(dir, url, end, days))
			want := truth(state, fake.Linux, end.Add(-days*24*time.Hour), end)
			compare(t, prices(open(t, dir)), want)
			changes := 0
			for _, rows := range want {
				changes += len(rows) - 1
			}
			if s.Changes != changes || s.Markets != len(want) {
				t.Errorf("the summary says %d changes of %d markets, want %d of %d", s.Changes, s.Markets, changes, len(want))
			}
			if s.Throttled == 0 || s.Retries == 0 {
				t.Errorf("the server was not hostile: %+v", s)
			}
		})
	}
}

// Where no token is ever good, windows are halved until each fits on a page.
func TestTokensNeverGood(t *testing.T) {
	t.Parallel()
	state := draw(37, 3)
	server, url := serve(t, state, fake.Faults{Expire: 1, PageMax: 15})
	dir := t.TempDir()
	record(t, settingsOf(dir, url, end, 2))
	compare(t, prices(open(t, dir)), truth(state, fake.Linux, end.Add(-48*time.Hour), end))
	if n := len(server.Calls()); n > 300 {
		t.Errorf("it took %d requests", n)
	}
}

// Data other than prices is stored where it was observed: the on-demand price over the whole span,
// scores and bands from the end on, since they could not have been observed earlier.
func TestSignals(t *testing.T) {
	t.Parallel()
	state := draw(7, 3)
	_, url := serve(t, state, hostile(7))
	dir := t.TempDir()
	s := record(t, settingsOf(dir, url, end, 2))
	tr := open(t, dir)
	for i := range tr.Series {
		m := &tr.Series[i]
		r, n := state.Regions[m.Region], len(m.At)-1
		onDemand, err := strconv.ParseFloat(r.OnDemand[m.Type], 64)
		if err != nil {
			t.Fatal(err)
		}
		if m.OnDemand[0] != policy.Dollars(onDemand) || m.OnDemand[n] != m.OnDemand[0] {
			t.Errorf("%s: on-demand price %v … %v, want %v", m.Name(), m.OnDemand[0], m.OnDemand[n], onDemand)
		}
		if m.At[n] != policy.TimeOf(end) || int(m.Band[n]) != r.Bands[m.Type] || int(m.Score[n]) != r.Scores[m.Type][m.Zone] {
			t.Errorf("%s: at %v band %d, score %d, want %v, %d, %d",
				m.Name(), m.At[n], m.Band[n], m.Score[n], end, r.Bands[m.Type], r.Scores[m.Type][m.Zone])
		}
		if n > 0 && (m.Band[n-1] != -1 || m.Score[n-1] != -1) {
			t.Errorf("%s: band or score stand before they were seen", m.Name())
		}
	}
	if n := len(tr.Series); s.OnDemand != n || s.Bands != n || s.Scores != n {
		t.Errorf("the summary says %+v, want %d of each", s, n)
	}
}

// Recordings of overlapping spans end with the same bytes as one recording of
// all, in whichever order they come.
func TestTwiceIsOnce(t *testing.T) {
	t.Parallel()
	state := draw(11, 4)
	_, url := serve(t, state, hostile(11))
	var mu sync.Mutex
	var wg sync.WaitGroup
	hashes := map[string][]string{}
	for name, parts := range map[string][][2]int{ // days before the end: from, until
		"one":                 {{3, 0}},
		"two":                 {{3, 1}, {2, 0}},
		"the first part last": {{1, 0}, {3, 0}},
		"many":                {{3, 2}, {3, 1}, {2, 0}},
	} {
		wg.Go(func() {
			dir := t.TempDir()
			for _, p := range parts {
				c := settingsOf(dir, url, end, p[0]-p[1])
				c.Until = end.Add(-time.Duration(p[1]) * 24 * time.Hour)
				c.Scores, c.Bands = false, false
				record(t, c)
			}
			h := hash(t, dir)
			mu.Lock()
			defer mu.Unlock()
			hashes[h] = append(hashes[h], name)
		})
	}
	wg.Wait()
	if len(hashes) != 1 {
		t.Errorf("the folders differ: %v", hashes)
	}
}

// A second recording of the same finds nothing to write.
func TestNothingToWrite(t *testing.T) {
	t.Parallel()
	_, url := serve(t, draw(5, 3), hostile(5))
	dir := t.TempDir()
	if s := record(t, settingsOf(dir, url, end, 2)); s.Files != 6 {
		t.Errorf("%d files written, want 6: three days of two regions", s.Files)
	}
	if s := record(t, settingsOf(dir, url, end, 2)); s.Files != 0 {
		t.Errorf("%d files written again", s.Files)
	}
}

// A second recording requests only what is new, or everything again where the days that it would
// continue from are gone.
func TestAsksForWhatIsNew(t *testing.T) {
	t.Parallel()
	state := draw(13, 9)
	server, url := serve(t, state, fake.Faults{})
	dir := t.TempDir()
	windows := func(now time.Time) int {
		before := len(server.Calls())
		c := settingsOf(dir, url, now, 7)
		c.Scores, c.Bands, c.OnDemand = false, false, false
		record(t, c)
		return len(server.Calls()) - before
	}
	whole := windows(end)
	if n := windows(end.Add(time.Hour)); n > whole/2 {
		t.Errorf("the second recording sent %d requests, the first of seven days %d", n, whole)
	}
	compare(t, prices(open(t, dir)), truth(state, fake.Linux, end.Add(-7*24*time.Hour), end.Add(time.Hour)))
	first := filepath.Join(dir, "provider=aws", "region=us-east-1", "date="+end.Add(-7*24*time.Hour).Format(time.DateOnly))
	if err := os.RemoveAll(first); err != nil {
		t.Fatal(err)
	}
	if n := windows(end.Add(time.Hour)); n < whole/2 {
		t.Errorf("a day is gone and %d requests of %d are sent again", n, whole)
	}
}

// A later recording that requests other types leaves the first ones alone.
func TestOtherTypes(t *testing.T) {
	t.Parallel()
	state := draw(21, 3)
	server, url := serve(t, state, hostile(21))
	dir := t.TempDir()
	c := settingsOf(dir, url, end, 2)
	c.Families, c.Types = nil, []string{"m5.large"}
	record(t, c)
	if n := len(open(t, dir).Series); n != 4 {
		t.Errorf("%d markets, want 4: one type in two zones of two regions", n)
	}
	for _, call := range server.Calls() {
		if v := call.Form.Get("Filter.1.Value.1"); call.Action == "DescribeSpotPriceHistory" && v != "m5.large" {
			t.Errorf("the filter asks for %q", v)
		}
	}
	c.Types = []string{"c6i.xlarge", "p3.2xlarge"}
	record(t, c)
	compare(t, prices(open(t, dir)), truth(state, fake.Linux, end.Add(-48*time.Hour), end))
}

// What was on record before a gap stays in force after it, and the gap is
// named.
func TestGap(t *testing.T) {
	t.Parallel()
	_, url := serve(t, draw(31, 9), fake.Faults{})
	dir := t.TempDir()
	c := settingsOf(dir, url, end, 1)
	c.Families, c.Types, c.Until = nil, []string{"m5.large"}, end.Add(-6*24*time.Hour)
	record(t, c)
	var said []string
	c.Warn = func(text string) { said = append(said, text) }
	c.Types, c.Until = []string{"c6i.xlarge"}, time.Time{}
	record(t, c)
	if text := strings.Join(said, "\n"); !strings.Contains(text, "from 2026-03-03T17:23:11.000Z to 2026-03-08T17:23:11.000Z") {
		t.Errorf("nothing names the gap: %q", said)
	}
	last, err := trace.Open(dir, trace.ReadOptions{From: policy.TimeOf(end.Add(-time.Hour))})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(last.Series); n != 8 {
		t.Errorf("%d markets at the end, want 8: two types in two zones of two regions", n)
	}
}

// Zones are recorded by name where that is requested, and a folder holds either names or IDs.
func TestZoneNames(t *testing.T) {
	t.Parallel()
	_, url := serve(t, draw(3, 3), fake.Faults{})
	dir := t.TempDir()
	c := settingsOf(dir, url, end, 1)
	c.ZoneNames = true
	record(t, c)
	for _, s := range open(t, dir).Series {
		if !strings.HasPrefix(s.Zone, s.Region) || strings.Contains(s.Zone, "az") {
			t.Errorf("zone %q is no name", s.Zone)
		}
		if s.Score[len(s.Score)-1] < 1 {
			t.Errorf("%s has no score: scores come by ID", s.Name())
		}
	}
	c.ZoneNames = false
	r, err := aws.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Record(t.Context()); !errors.Is(err, aws.ErrFolder) {
		t.Errorf("IDs joined names: %v", err)
	}
}

// Following records what is new each time, also what is published late, until
// it is stopped; the result is that of one recording.
func TestFollow(t *testing.T) {
	t.Parallel()
	state := fake.Draw(fake.Shape{
		Seed: 13, Regions: regions, Zones: 2, Types: kinds, From: end.Add(-72 * time.Hour), Until: end, PerDay: 16, Repeats: 0.4,
	})
	for _, r := range state.Regions {
		for i := range r.Events {
			r.Events[i].Published = r.Events[i].At.Add(time.Duration(i%4) * 75 * time.Minute)
		}
	}
	server, url := serve(t, state, hostile(13))
	now := end.Add(-10 * time.Hour)
	server.SetNow(now)
	dir := t.TempDir()
	c := settingsOf(dir, url, end, 2)
	c.Scores, c.Bands, c.Every = false, false, time.Second
	c.Now = func() time.Time { return now }
	r, err := aws.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	steps := 0
	err = r.Follow(ctx, func(s *aws.Summary) {
		if steps++; steps > 1 && s.Until.Sub(s.From) > 10*time.Hour {
			t.Errorf("step %d asks for %v again", steps, s.Until.Sub(s.From))
		}
		if now.Equal(end) {
			stop()
			return
		}
		now = now.Add(150 * time.Minute)
		server.SetNow(now)
	})
	if err != nil || steps != 5 {
		t.Fatalf("after %d steps: %v", steps, err)
	}
	from := end.Add(-10 * time.Hour).Add(-48 * time.Hour)
	want := truth(visible(state, end), fake.Linux, from, end)
	compare(t, prices(open(t, dir)), want)
}
