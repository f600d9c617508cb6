package forecaster

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/tracetest"
)

// midnight is the start of the recording in the tests.
var midnight = policy.TimeOf(time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC))

// recording returns a type that was available every other hour, from midnight on.
func recording(t *testing.T) *trace.Trace {
	return tracetest.Alternating(t, "recorded", midnight)
}

// small returns a configuration that takes little time.
func small(t *testing.T) Config {
	c := DefaultConfig()
	c.Recordings = []*trace.Trace{recording(t)}
	c.Copies, c.Generated, c.Scarce, c.Days, c.GeneratedShare = 2, 2, 0, 2, 0.02
	return c
}

func build(t *testing.T, c Config) *Dataset {
	t.Helper()
	d, err := Build(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// shared is what is built once for the tests that only read it.
var shared struct {
	sync.Once
	*Dataset
}

func once(t *testing.T) *Dataset {
	t.Helper()
	shared.Do(func() { shared.Dataset = build(t, small(t)) })
	if shared.Dataset == nil {
		t.Fatal("the data of another test could not be built")
	}
	return shared.Dataset
}

// TestRecordedLabels holds labels of a recording to what can be read off it. In
// an even hour the market sells for what is left of it, so from m minutes past
// it a launch is refused for m minutes of the next hour, give or take the minute
// between two probes; and at the turn of the hour, in half of all cases, all
// slots are taken.
func TestRecordedLabels(t *testing.T) {
	d := once(t)
	whole, some, rows := 0, 0, 0
	for s := range splits {
		x := &d.tables[s]
		for i := range x.len() {
			row, label := x.rows[i*rowColumns:(i+1)*rowColumns], x.labels[i*labelColumns:(i+1)*labelColumns]
			past, even := float64(row[rowMinutes]%60), row[rowMinutes]/60%2 == 0
			if Stratum(row[rowStratum]) != RecordedGPU || past < 2 {
				continue
			}
			rows++
			if (row[rowOpen] == 1) != even {
				t.Fatalf("%d minutes past hour %d: open %d", row[rowMinutes]%60, row[rowMinutes]/60, row[rowOpen])
			}
			want := past / 60
			if !even {
				want = 1 - past/60
			}
			if math.Abs(float64(label[labelCapacity])-want) > 1.5/60 || math.Abs(float64(label[labelCapacity6])-0.5) > 3./360 {
				t.Fatalf("%d minutes past hour %d: capacity %v, want %v and a half", row[rowMinutes]%60, row[rowMinutes]/60, label, want)
			}
			if even && label[labelRuntime] == 1 {
				whole++
			}
			if even && past >= 50 && label[labelRuntime] > 0 {
				some++
			}
		}
	}
	if rows < 100 || whole < rows/8 || some == 0 {
		t.Errorf("%d rows, in %d of which all slots are taken and in %d some within minutes", rows, whole, some)
	}
}

// TestLabelsSlowly counts labels of a generated realisation minute by minute and slot
// by slot.
func TestLabelsSlowly(t *testing.T) {
	c := small(t)
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
	w, err := c.newRealisation(plan{region: "us-east-1", from: midnight, to: midnight.Add(48 * time.Hour), seed: 7, recording: -1})
	if err != nil {
		t.Fatal(err)
	}
	closedMinutes := 0
	for m := 0; m < len(w.markets); m += 4 {
		for h := range 47 {
			at := midnight.Add(time.Duration(h)*time.Hour + 7*time.Minute)
			refused := 0
			for k := 1; k <= 3600; k++ {
				if !w.weather.Open(m, at.Add(time.Duration(k)*time.Second)) {
					refused++
				}
			}
			closedMinutes += refused / 60
			if got := float64(w.refused(m, at, time.Hour)); math.Abs(got-float64(refused)/3600) > 2./3600 {
				t.Fatalf("%s at %v: refused %v, want %v", w.markets[m].Name, at, got, float64(refused)/3600)
			}
			var got [2]float32
			w.runtime(m, at, got[:])
			if !w.weather.Open(m, at) {
				continue
			}
			lost, slots := 0, min(w.weather.Slots(m), slotsMost)
			for slot := range slots {
				if r, ok := w.weather.Reclaim(m, slot, at); ok && r.At <= at.Add(6*time.Hour) {
					lost++
				}
			}
			if want := float32(lost) / float32(slots); got[1] != want || got[0] > got[1] {
				t.Fatalf("%s at %v: %v is lost, want %v", w.markets[m].Name, at, got, want)
			}
		}
	}
	if closedMinutes == 0 {
		t.Error("no market was ever closed")
	}
}

// TestSplits keeps regions and times of the splits apart, by the farthest look
// ahead and back, and their seeds.
func TestSplits(t *testing.T) {
	c := small(t)
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
	seeds := map[uint64]bool{}
	for _, p := range c.plans() {
		if seeds[p.seed] {
			t.Errorf("seed %d is used twice", p.seed)
		}
		seeds[p.seed] = true
		if held := slices.Contains(c.HoldOut, p.region); held != (p.split == reporting) {
			t.Errorf("%v in %s", p.split, p.region)
		}
		end := p.to.Add(lookAhead + history)
		if p.split == training && end > c.TrainUntil ||
			p.split == choosing && (p.from < c.TrainUntil || end > c.ChooseUntil) || p.split == reporting && p.from < c.ChooseUntil {
			t.Errorf("%v from %v to %v, cut at %v and %v", p.split, p.from, p.to, c.TrainUntil, c.ChooseUntil)
		}
	}
}

// TestSameBytes makes equal data twice, reads it and refuses to write over it; and
// normalises by the rows to train on alone.
func TestSameBytes(t *testing.T) {
	dirs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	var sums []string
	for i, dir := range dirs {
		d := once(t)
		if i > 0 {
			d = build(t, small(t))
		}
		about, err := d.Write(dir)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, about.Fingerprint)
		mean := 0.0
		for i := range d.tables[training].len() {
			mean += float64(d.tables[training].features[i*len(about.FeatureNames)])
		}
		if mean /= float64(d.tables[training].len()); math.Abs(mean-about.Normalisation.Mean[0]) > 1e-5 {
			t.Errorf("the mean price ratio is %v, want that of the rows to train on, %v", about.Normalisation.Mean[0], mean)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("fingerprints %v differ", sums)
	}
	files, err := filepath.Glob(filepath.Join(dirs[0], "*"))
	if err != nil || len(files) != 14 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, f := range files {
		a, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dirs[1], filepath.Base(f)))
		if err != nil || string(a) != string(b) {
			t.Errorf("%s differs: %v", filepath.Base(f), err)
		}
	}
	r, err := Read(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, _, n := r.Rows(); n != r.About.Splits["report"].Rows || n == 0 {
		t.Errorf("%d rows to report on, want %d", n, r.About.Splits["report"].Rows)
	}
	if _, err := once(t).Write(dirs[0]); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Error(err)
	}
	other := small(t)
	other.Seed, other.Generated, other.Copies = 2, 2, 2
	if about, err := build(t, other).Write(filepath.Join(t.TempDir(), "c")); err != nil || about.Fingerprint == sums[0] {
		t.Errorf("%v, another seed has the same fingerprint", err)
	}
}

// TestSources names the recorded region that the weather of each row is of, so that
// a fold can leave out all that a region recorded: its recording, and the realisations by its
// law. None is of a region that is held out but rows to report on.
func TestSources(t *testing.T) {
	d := once(t)
	sources := d.about().Sources
	if !slices.Equal(sources, []string{"us-east-1", "us-west-2"}) {
		t.Fatal(sources)
	}
	for s := range splits {
		want := int32(slices.Index(sources, "us-east-1"))
		if s == reporting {
			want = int32(slices.Index(sources, "us-west-2"))
		}
		x := &d.tables[s]
		for i := range x.len() {
			row := x.rows[i*rowColumns : (i+1)*rowColumns]
			if recorded := Stratum(row[rowStratum]) == RecordedGPU; recorded && row[rowSource] != want || !recorded && row[rowSource] != -1 {
				t.Fatalf("%v: row %v, want source %d of recorded markets", s, row, want)
			}
		}
	}
	c := small(t)
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
	w, err := c.newRealisation(plan{region: "eu-west-1", from: midnight, to: midnight.Add(24 * time.Hour), seed: 5,
		recording: -1, scarce: true})
	if err != nil || w.source != "us-east-1" {
		t.Errorf("%v, a world by the law of %q, want us-east-1", err, w.source)
	}
}

// TestConfigRefused names what is wrong.
func TestConfigRefused(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(*Config)
	}{
		{"copies: 1", func(c *Config) { c.Copies = 1 }},
		{"recorded share: 0", func(c *Config) { c.RecordedShare = 0 }},
		{"no region is named", func(c *Config) { c.HoldOut = nil }},
		{"us-east-1 is a region to train on", func(c *Config) { c.HoldOut = []string{"us-east-1"} }},
		{"neither a recording nor a world", func(c *Config) { c.Recordings, c.Generated = nil, 0 }},
		{"there must be a day between", func(c *Config) { c.TrainUntil, c.ChooseUntil = midnight, midnight }},
		{"nothing to report", func(c *Config) { c.HoldOut, c.Generated = []string{"eu-north-1"}, 0 }},
	} {
		x := small(t)
		c.spoil(&x)
		if _, err := Build(x); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestJudge judges a forecaster that knows the label half of the way from the
// closed form: better than it on every stratum, and well below itself.
func TestJudge(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if _, err := once(t).Write(dir); err != nil {
		t.Fatal(err)
	}
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	closed := r.closedForm()
	var own Answers
	for k := range own {
		own[k] = slices.Clone(closed[k])
		for i := range own[k] {
			if y := float64(r.labels[i*labelColumns+k]); y == y {
				own[k][i] = (own[k][i] + y) / 2
			}
		}
	}
	judged := r.Judge(own, append(r.Baselines(), Named{"itself", own}))
	if len(judged) < 4 {
		t.Fatalf("%d strata and labels", len(judged))
	}
	for _, j := range judged {
		at := slices.IndexFunc(j.Against, func(s Skill) bool { return s.Over == ClosedForm })
		if at < 0 || j.Against[len(j.Against)-1].Over != "itself" {
			t.Fatalf("%v, %s: against %+v", j.Stratum, j.Label, j.Against)
		}
		s, itself := j.Against[at], j.Against[len(j.Against)-1]
		// Half of the way is a quarter of the squared error, exactly.
		if j.Brier > 0 && math.Abs(s.Brier[0]-0.75) > 1e-9 {
			t.Errorf("%v, %s: Brier skill %v, want 0.75", j.Stratum, j.Label, s.Brier)
		}
		if itself.Brier != [3]float64{} && j.Brier > 0 || s.Brier[1] > s.Brier[0] || s.Brier[2] < s.Brier[0] {
			t.Errorf("%v, %s: over itself %v, over the closed form %v", j.Stratum, j.Label, itself.Brier, s.Brier)
		}
	}
}

// TestSlope finds the slope of a plot whose points are on a line: without an interval, and
// with one around it where days differ.
func TestSlope(t *testing.T) {
	const days, rows = 20, 400
	r, own := &Reading{}, []float64{}
	var at []int
	for day := range days {
		for i := range rows {
			p := float64(i+1) / (2 * rows)
			at, own = append(at, len(own)), append(own, p)
			label := make([]float32, labelColumns)
			label[labelRuntime] = float32(1.5*p + 0.01)
			r.labels = append(r.labels, label...)
			row := make([]int32, rowColumns)
			row[rowCluster], row[rowMinutes] = int32(day), int32(60*i)
			r.rows = append(r.rows, row...)
		}
	}
	_, slope := r.reliability(at, labelRuntime, own)
	for _, x := range slope {
		if math.Abs(x-1.5) > 1e-4 {
			t.Fatalf("%v, want 1.5 and no interval", slope)
		}
	}
	for i := range own {
		r.labels[i*labelColumns+labelRuntime] *= float32(r.rows[i*rowColumns+rowCluster]%2) * 2
	}
	_, slope = r.reliability(at, labelRuntime, own)
	if math.Abs(slope[0]-1.5) > 1e-4 || slope[1] < 0.5 || slope[1] > 1.3 || slope[2] < 1.7 || slope[2] > 2.5 {
		t.Errorf("%v, want 1.5 in an interval of half of the days", slope)
	}
}

// TestNoSlope: a forecast that is the same everywhere has none.
func TestNoSlope(t *testing.T) {
	if x := slopeOf([]binned{{rows: 7, predicted: 0.7, observed: 1}, {rows: 9, predicted: 0.9, observed: 3}}); !math.IsNaN(x) {
		t.Error(x)
	}
}

// TestLogistic finds the numbers that outcomes were made with, of two signals that go
// together.
func TestLogistic(t *testing.T) {
	want := []float64{-2, 3, -1}
	row := func(i int) ([]float64, float64) {
		x := []float64{1, float64(i) / 1000, float64(i%7)/7 + float64(i)/2000}
		return x, sigmoid(want, x)
	}
	got := fitLogistic(1000, 3, row)
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-2 {
			t.Errorf("%v, want %v", got, want)
			break
		}
	}
	if fitLogistic(0, 3, row) != nil {
		t.Error("there is a fit of nothing")
	}
}

// TestBaselines holds the constant to the mean of the rows to train on, and the band's rate
// to the probability of a month.
func TestBaselines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if _, err := once(t).Write(dir); err != nil {
		t.Fatal(err)
	}
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := r.Baselines()
	for i, b := range all {
		if b.Name != BaselineNames[i] {
			t.Errorf("baseline %d is %s, want %s", i, b.Name, BaselineNames[i])
		}
	}
	sum, n := 0.0, 0.0
	for i := range len(r.trainedRows) / rowColumns {
		if y := r.trained[i*labelColumns+labelCapacity]; used(r.trainedRows[i*rowColumns:], GeneratedCPU, labelCapacity, y) {
			sum, n = sum+float64(y), n+1
		}
	}
	band := slices.Index(r.About.FeatureNames, "band")
	seen := 0
	for i := range len(r.rows) / rowColumns {
		if Stratum(r.rows[i*rowColumns+rowStratum]) != GeneratedCPU {
			continue
		}
		seen++
		if got := all[0].Answers[labelCapacity][i]; math.Abs(got-sum/n) > 1e-6 {
			t.Fatalf("constant %v, want %v", got, sum/n)
		}
		monthly := policy.MonthlyReclaims()[int(4*r.features[i*r.columns+band])]
		got := 1 - math.Pow(1-all[1].Answers[labelRuntime][i], policy.HoursPerMonth)
		if math.Abs(got-monthly) > 1e-9 || all[1].Answers[labelCapacity] != nil {
			t.Fatalf("the band's rate is %v in a month, want %v", got, monthly)
		}
	}
	if seen == 0 {
		t.Error("no row of a common type")
	}
}

// TestRecordingWithDepth makes rows of a recording in which the depth changes more often
// than whether there is any, and leaves the recording as it was.
func TestRecordingWithDepth(t *testing.T) {
	c := small(t)
	plain := c.Recordings[0]
	var all []trace.Series
	for _, p := range plain.Series {
		s := trace.Series{Provider: p.Provider, Region: p.Region, Zone: p.Zone, Type: p.Type}
		for i, at := range p.At {
			for k := range 2 {
				s.At, s.Spot = append(s.At, at.Add(time.Duration(k)*20*time.Minute)), append(s.Spot, p.Spot[i])
				s.Available, s.ProbeGap = append(s.Available, p.Available[i]), append(s.ProbeGap, 60)
				s.Requested, s.Launched = append(s.Requested, 16), append(s.Launched, int32(p.Available[i])*int32(8+k))
			}
		}
		all = append(all, s)
	}
	deep, err := trace.New("deep", all)
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(deep.Series[0].At)
	c.Recordings = []*trace.Trace{deep}
	build(t, c)
	if !slices.Equal(before, deep.Series[0].At) {
		t.Error("the recording was changed")
	}
}

// TestClusterMeets meets what runs meet: the experience of a cluster that always
// holds a node in a market that closes every other hour.
func TestClusterMeets(t *testing.T) {
	c := small(t)
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
	w, err := c.newRealisation(plan{region: "us-east-1", from: midnight, to: midnight.Add(48 * time.Hour), seed: 3, recording: 0})
	if err != nil {
		t.Fatal(err)
	}
	u := newCluster(w)
	u.wants[0] = want{nodes: 1, retry: tick, turns: []policy.Time{w.from}}
	for at := w.from; at <= w.to; at = at.Add(tick) {
		u.advance(at)
	}
	e := u.markets[0].seen
	var s policy.Snapshot
	u.snapshot(&s)
	if e.NodeHours < 20 || e.NodeHours > 48 || e.Refusals < 20 || e.Reclaims < 4 || s.Markets[0].Experience != e {
		t.Errorf("%+v", e)
	}
	if got := len(models.FeatureNames(models.MarketFeaturesV2)); got != len(once(t).about().FeatureNames) {
		t.Errorf("%d features", got)
	}
}
