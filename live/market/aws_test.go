package market

import (
	"context"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clocktest "k8s.io/utils/clock/testing"

	"github.com/spotter-dev/spotter/live/aws"
	"github.com/spotter-dev/spotter/live/aws/fake"
	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
	"github.com/spotter-dev/spotter/policy"
)

func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "",
	} {
		os.Setenv(name, value)
	}
	os.Exit(m.Run())
}

// A cloud is a book that reads a server which plays AWS.
type cloud struct {
	*bookFixture
	server *fake.Server
	state  *fake.State
}

// kinds are types that the catalog has; zz9.large is one that it has not.
var kinds = []string{"c5.large", "m5.large", "r5.xlarge"}

func newCloud(t *testing.T, change func(*Config)) *cloud {
	t.Helper()
	state := fake.Draw(fake.Shape{
		Seed: 7, Regions: []string{"eu-west-1", "us-east-1"}, Zones: 3, Types: kinds,
		From: noon.Add(-24 * time.Hour), Until: noon.Add(24 * time.Hour), PerDay: 20, Repeats: 0.2,
	})
	c := &cloud{server: fake.New(state, fake.Faults{}), state: state}
	c.server.SetNow(noon)
	web := httptest.NewServer(c.server)
	t.Cleanup(web.Close)
	clock := clocktest.NewFakeClock(noon)
	rc := aws.DefaultConfig()
	rc.Regions, rc.Endpoint, rc.AdvisorURL = []string{"eu-west-1", "us-east-1"}, web.URL, web.URL+fake.AdvisorPath
	rc.Pace.BackoffMin, rc.Pace.BackoffMax = time.Millisecond, 2*time.Millisecond
	rc.Pace.PerSecond = 1e5 // a tenth of a second at most is lost to throttling
	rc.Now = clock.Now
	reader, err := aws.NewReader(rc)
	if err != nil {
		t.Fatal(err)
	}
	feeds := NewAWS(reader, 5*time.Minute)
	c.bookFixture = newBookFixture(t, func(config *Config) {
		config.Feeds, config.Clock = feeds, clock
		if change != nil {
			change(config)
		}
	})
	c.clock = clock
	return c
}

// pass moves all clocks on.
func (c *cloud) pass(d time.Duration) {
	c.clock.Step(d)
	c.server.SetNow(c.clock.Now())
}

// refresh reads all feeds.
func (c *cloud) refresh(t *testing.T) error {
	t.Helper()
	return c.Refresh(t.Context())
}

// truth returns the price in force of a market by the state, since when it is, and
// when it was last published.
func (c *cloud) truth(region, zone, kind string, now time.Time) (_ policy.Money, first, last policy.Time) {
	var price string
	var since, newest time.Time
	for _, e := range c.state.Regions[region].Events {
		if e.Zone == zone && e.Type == kind && e.Product == fake.Linux && !e.At.After(now) {
			if e.Price != price {
				since = e.At
			}
			price, newest = e.Price, e.At
		}
	}
	v, err := strconv.ParseFloat(price, 64)
	if err != nil {
		panic(err)
	}
	return policy.Dollars(v), policy.TimeOf(since), policy.TimeOf(newest)
}

// check compares each Spot market of a snapshot with the state.
func (c *cloud) check(t *testing.T, s *policy.Snapshot) {
	t.Helper()
	spots := 0
	for i := range s.Markets {
		m := &s.Markets[i]
		zone, kind := s.Zones[m.Zone], s.Types[m.Type].Name
		list, err := strconv.ParseFloat(c.state.Regions[m.Region].OnDemand[kind], 64)
		if err != nil || m.OnDemand != policy.Dollars(list) || m.OnDemandModelled {
			t.Errorf("%s: on demand %v, want %v", m.Name, m.OnDemand, policy.Dollars(list))
		}
		if band := policy.Band(c.state.Regions[m.Region].Bands[kind]); m.Band != band {
			t.Errorf("%s: band %d, want %d", m.Name, m.Band, band)
		}
		if m.Capacity != policy.Spot {
			continue
		}
		spots++
		price, first, last := c.truth(m.Region, zone, kind, s.Now.Std())
		if !m.Offered || m.Price != price || m.PricedAt < first || m.PricedAt > last {
			t.Errorf("%s: offered %v at %v since %v, want %v since %v or a repetition until %v", m.Name, m.Offered, m.Price,
				m.PricedAt, price, first, last)
		}
		for k, p := range m.History {
			at := s.Now - s.Now%gridStep - policy.Time(len(m.History)-1-k)*gridStep
			if want, _, _ := c.truth(m.Region, zone, kind, at.Std()); p != want {
				t.Errorf("%s: %v at %v, want %v", m.Name, p, at, want)
			}
		}
		if len(m.History) != historySize {
			t.Errorf("%s: %d prices of history", m.Name, len(m.History))
		}
		id := ""
		for _, z := range c.state.Regions[m.Region].Zones {
			if z.Name == zone {
				id = z.ID
			}
		}
		if want := c.state.Regions[m.Region].Scores[kind][id]; int(m.PlacementScore) != want {
			t.Errorf("%s: score %d, want %d", m.Name, m.PlacementScore, want)
		}
	}
	if want := 2 * 3 * len(kinds); spots != want {
		t.Errorf("%d spot markets, want %d", spots, want)
	}
}

// The snapshot has what AWS publishes, and follows its changes hour by hour for a day.
func TestPricesMoveFromAWSToTheSnapshot(t *testing.T) {
	c := newCloud(t, nil)
	if err := c.refresh(t); err != nil && !strings.Contains(err.Error(), ErrNothingWanted.Error()) {
		t.Fatal(err)
	}
	c.fill(t)
	for range 8 {
		if err := c.refresh(t); err != nil {
			t.Fatal(err)
		}
		c.check(t, c.fill(t))
		c.pass(3*time.Hour + 7*time.Minute)
	}
}

// A type that the catalog does not hold is described by EC2.
func TestTypesThatTheCatalogLacks(t *testing.T) {
	c := newCloud(t, nil)
	r := c.state.Regions["eu-west-1"]
	r.Kinds = []fake.Kind{
		{Name: "zz9.xlarge", Arch: "x86_64", VCPU: 4, MemoryMiB: 16384, ENIs: 4, IPv4: 15, Gbps: 1.25, GPUs: 2,
			GPUName: "L4", GPUMaker: "NVIDIA"},
		{Name: "zz9.broken", Arch: "x86_64", VCPU: 4},
		{Name: "m5.large", Arch: "x86_64", VCPU: 64, MemoryMiB: 1, ENIs: 2, IPv4: 2},
	}
	r.OnDemand["zz9.xlarge"] = "0.5"
	_ = c.refresh(t)
	s := c.fill(t)
	i := slices.IndexFunc(s.Types, func(x policy.InstanceType) bool { return x.Name == "zz9.xlarge" })
	if i < 0 {
		t.Fatalf("not among %d types", len(s.Types))
	}
	if x := s.Types[i]; x.VCPU != 4 || x.GPUResource != "nvidia.com/gpu" || x.Capacity.GPU != 2 || x.GPUName != "l4" ||
		x.Allocatable.Pods != 4*14+2 || x.NetworkMbps != 1250 || x.Family != "zz9" {
		t.Errorf("%+v", x)
	}
	if m := marketOf(t, s, "aws/eu-west-1/eu-west-1a/zz9.xlarge/on-demand"); m.Price != policy.Dollars(0.5) {
		t.Errorf("%+v", m)
	}
	if i := slices.IndexFunc(s.Types, func(x policy.InstanceType) bool { return x.Name == "m5.large" }); s.Types[i].VCPU != 2 {
		t.Error("the catalog's type was replaced")
	}
}

// Whatever goes wrong at AWS, what was known stays with its age; after its time it is
// offered no more and is still no price of 0; once AWS answers again all is well.
func TestEveryErrorOfAWSLeavesOldPrices(t *testing.T) {
	expired := map[string]string{}
	denied := map[string]string{}
	for _, action := range []string{"DescribeSpotPriceHistory", "DescribeAvailabilityZones", "DescribeInstanceTypes",
		"DescribeInstanceTypeOfferings", "GetSpotPlacementScores", "GetProducts"} {
		expired[action], denied[action] = "ExpiredToken", "UnauthorizedOperation"
	}
	for name, f := range map[string]fake.Faults{
		"throttled": {Throttle: 1}, "internal": {Internal: 1}, "reset": {Reset: 1}, "cut short": {Truncate: 1}, "empty": {Empty: 1},
		"expired": {Deny: expired}, "denied": {Deny: denied}, "hollow for ever": {Hollow: 1}, "tokens": {PageMax: 2,
			Expire: 1}, "silent": {Silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, nil)
			_ = c.refresh(t)
			c.fill(t)
			if err := c.refresh(t); err != nil {
				t.Fatal(err)
			}
			before := c.fill(t)
			c.check(t, before)
			c.server.SetFaults(f)
			patient := c.config.Timeout
			if f.Silent || f.Hollow > 0 {
				c.config.Timeout = 100 * time.Millisecond
			}
			c.pass(90 * time.Minute)
			if err := c.refresh(t); err == nil {
				t.Fatal("no error")
			}
			s := c.fill(t)
			old(t, before, s, true)
			if h := c.Health()[0]; h.Failed != 1 || h.Err == nil || h.AsOf != before.Now {
				t.Errorf("health %+v", h)
			}
			c.pass(time.Hour)
			old(t, before, c.fill(t), false)
			c.server.SetFaults(fake.Faults{})
			c.config.Timeout = patient
			if err := c.refresh(t); err != nil {
				t.Fatal(err)
			}
			c.check(t, c.fill(t))
		})
	}
}

// old compares a snapshot with one before, of which it shows the prices still.
func old(t *testing.T, before, s *policy.Snapshot, offered bool) {
	t.Helper()
	if len(s.Markets) != len(before.Markets) {
		t.Fatalf("%d markets, want %d", len(s.Markets), len(before.Markets))
	}
	for i := range s.Markets {
		m, was := &s.Markets[i], &before.Markets[i]
		if m.Price != was.Price || m.Price <= 0 || m.OnDemand != was.OnDemand || m.Offered != (offered || m.Capacity == policy.OnDemand) {
			t.Errorf("%s: offered %v at %v, was %v", m.Name, m.Offered, m.Price, was.Price)
		}
	}
	for i, x := range s.Sources {
		if x.Prices != (i == 0) {
			t.Errorf("%s provides prices: %v", x.Name, x.Prices)
		}
	}
	if s.Sources[0].At != before.Sources[0].At {
		t.Errorf("prices count as of %v, want %v", s.Sources[0].At, before.Sources[0].At)
	}
}

// Invalid rows spoil neither the others nor what was known.
func TestRowsOfAWSThatLie(t *testing.T) {
	c := newCloud(t, nil)
	_ = c.refresh(t)
	c.fill(t)
	if err := c.refresh(t); err != nil {
		t.Fatal(err)
	}
	c.pass(30 * time.Minute)
	before := c.fill(t)
	var lies []fake.Event
	for i, price := range []string{"0.000000", "-0.1", "NaN", "cheap", "99999", "1e300", ""} {
		lies = append(lies, fake.Event{At: c.clock.Now().Add(-time.Duration(i+1) * time.Minute), Zone: "eu-west-1a",
			Type: "m5.large", Product: fake.Linux, Price: price})
	}
	honest := c.state.Regions["eu-west-1"].Events
	c.server.Change(func(s *fake.State) {
		s.Regions["eu-west-1"].Events = append(slices.Clone(honest), lies...)
	})
	c.server.SetFaults(fake.Faults{Strangers: true, Shuffle: true, PageMax: 7, Again: 2, Hollow: 0.3, Seed: 3})
	if err := c.refresh(t); err != nil {
		t.Fatal(err)
	}
	c.server.Change(func(s *fake.State) { s.Regions["eu-west-1"].Events = honest })
	s := c.fill(t)
	if len(s.Markets) != len(before.Markets) {
		t.Errorf("%d markets, want %d", len(s.Markets), len(before.Markets))
	}
	c.check(t, s)
	if h := c.Health()[0]; h.Err == nil || h.Failed != 0 {
		t.Errorf("nobody says that there were lies: %+v", h)
	}
}

// AWS receives only the requests that the documentation lists, in shadow mode or not.
func TestRule13MarketsAreOnlyRead(t *testing.T) {
	c := newCloud(t, nil)
	_ = c.refresh(t)
	c.fill(t)
	if err := c.refresh(t); err != nil {
		t.Fatal(err)
	}
	policy := rights.PolicyOf(rights.Setup{Parts: []rights.Part{rights.Prices}, Regions: []string{"eu-west-1", "us-east-1"}})
	asked := map[string]bool{}
	for _, call := range c.server.Calls() {
		service := "ec2:"
		switch call.Action {
		case "SpotAdvisor": // a public file
			continue
		case "GetProducts":
			service = "pricing:"
		}
		asked[service+call.Action] = true
		for _, region := range []string{call.Region, "ap-south-1"} {
			r := rightstest.Request{Action: service + call.Action, Resource: "*", Keys: map[string][]string{"aws:RequestedRegion": {region}}}
			if rightstest.Allows(policy, r) != (region == call.Region) {
				t.Errorf("%s in %s: allowed is %t", r.Action, region, rightstest.Allows(policy, r))
			}
		}
	}
	if got := slices.Sorted(maps.Keys(asked)); !slices.Equal(got, aws.ReaderActions) {
		t.Errorf("asked for %v, and %v are documented", got, aws.ReaderActions)
	}
	text, err := os.ReadFile("../../docs/live-markets.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range aws.ReaderActions {
		if !strings.Contains(string(text), strconv.Quote(action)) {
			t.Errorf("the documentation does not name %s", action)
		}
	}
}

// A reader asks from where it was, with an overlap, and scores within their quota.
func TestOnlyWhatIsNewIsAskedFor(t *testing.T) {
	c := newCloud(t, nil)
	_ = c.refresh(t)
	c.fill(t)
	calls := len(c.server.Calls())
	c.pass(20 * time.Minute)
	if err := c.refresh(t); err != nil {
		t.Fatal(err)
	}
	starts := map[string]bool{}
	scores := 0
	for _, call := range c.server.Calls()[calls:] {
		switch call.Action {
		case "DescribeSpotPriceHistory":
			starts[call.Form.Get("StartTime")] = true
		case "GetSpotPlacementScores":
			scores++
		}
	}
	if want := []string{noon.Add(-time.Hour).Format(time.RFC3339)}; !slices.Equal(slices.Collect(maps.Keys(starts)), want) {
		t.Errorf("prices were asked for from %v on, want %v", starts, want)
	}
	if want := 2 * len(kinds); scores != want {
		t.Errorf("%d requests for scores, want %d", scores, want)
	}
}

// Beyond the quota types are without a score, and it is said; the quota of AWS itself
// is no error either.
func TestScoresKeepToTheirQuota(t *testing.T) {
	for name, f := range map[string]fake.Faults{"ours": {}, "that of AWS": {ScoresMax: 2}} {
		state := fake.Draw(fake.Shape{Seed: 1, Regions: []string{"eu-west-1"}, Zones: 1, Types: kinds,
			From: noon.Add(-time.Hour), Until: noon, PerDay: 1})
		server := fake.New(state, f)
		web := httptest.NewServer(server)
		rc := aws.DefaultConfig()
		rc.Regions, rc.Endpoint, rc.ScoresMax, rc.Now = []string{"eu-west-1"}, web.URL, 3, func() time.Time { return noon }
		if f.ScoresMax == 0 {
			rc.ScoresMax = 2
		}
		rc.Dir = t.TempDir()
		for range 2 { // also after a restart
			reader, err := aws.NewReader(rc)
			if err != nil {
				t.Fatal(err)
			}
			scores, left, err := reader.Scores(t.Context(), "eu-west-1", kinds)
			if err != nil || left != 1 || len(scores) != 2 {
				t.Errorf("%s: %d scores, %d left, error %v; want 2 and 1", name, len(scores), left, err)
			}
		}
		web.Close()
	}
}

// Credentials that have expired are looked for again.
func TestExpiredCredentialsAreLookedForAgain(t *testing.T) {
	c := newCloud(t, nil)
	_ = c.refresh(t)
	c.fill(t)
	c.server.SetFaults(fake.Faults{Deny: map[string]string{"DescribeSpotPriceHistory": "ExpiredToken"}})
	t.Setenv("AWS_ACCESS_KEY_ID", "renewed")
	if err := c.refresh(t); err == nil {
		t.Fatal("no error")
	}
	calls := c.server.Calls()
	if key := calls[len(calls)-1].Key; key != "renewed" {
		t.Errorf("the last request was signed by %q", key)
	}
}

// Without credentials nothing is known and the reason is said; once they are there
// all is.
func TestCredentialsMayComeLater(t *testing.T) {
	key := os.Getenv("AWS_ACCESS_KEY_ID")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	c := newCloud(t, nil)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := c.Refresh(ctx); err == nil || !strings.Contains(err.Error(), aws.ErrNoCredentials.Error()) {
		t.Fatalf("error %v", err)
	}
	if n := len(c.fill(t).Markets); n != 0 {
		t.Errorf("%d markets", n)
	}
	os.Setenv("AWS_ACCESS_KEY_ID", key)
	_ = c.refresh(t)
	if n := len(c.fill(t).Markets); n == 0 {
		t.Error("no market")
	}
}
