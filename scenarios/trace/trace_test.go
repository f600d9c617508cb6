package trace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// at returns an instant on the given day and hour of January 2026.
func at(d int, hour float64) policy.Time {
	return policy.TimeOf(time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC)) + policy.Time(hour*3600)*1000
}

func cents(values ...int) []policy.Money {
	out := make([]policy.Money, len(values))
	for i, v := range values {
		if out[i] = policy.Money(v) * policy.Dollar / 100; v < 0 {
			out[i] = policy.NoPrice
		}
	}
	return out
}

// small is a trace with every column, a market that comes and goes, two
// products and two regions.
func small(t testing.TB) *Trace {
	t.Helper()
	tr, err := New("small", []Series{
		{
			Provider: "aws", Region: "us-east-1", Zone: "us-east-1b", Type: "m5.large",
			At: []policy.Time{at(1, 3), at(1, 9), at(3, 0), at(4, 23)}, Spot: cents(4, 5, -1, 6),
			OnDemand:  cents(10, 10, 10, 11),
			Available: []int8{1, 0, 0, -1}, Band: []int8{-1, 0, 4, 4}, Score: []int8{-1, 10, -1, 3},
			ProbeGap: []int32{0, 600, 0, 34}, Requested: []int32{16, 16, 8, -1}, Launched: []int32{7, 0, 0,
				-1}, Bids: [3][]policy.Money{cents(0, 3, 3, 4), nil, cents(0, 0, 0, 9)},
		},
		{
			Provider: "aws", Region: "us-east-1", Zone: "us-east-1a", Type: "c5.large",
			At: []policy.Time{at(1, 0), at(2, 12)}, Spot: cents(3, 4),
			Hazard: []float64{-1, 0.25}, TrueHazard: []float64{0.125, 3},
		},
		{
			Provider: "aws", Region: "us-east-1", Zone: "us-east-1a", Type: "c5.large", Product: "Windows",
			At: []policy.Time{at(1, 1), at(2, 11), at(2, 13)}, Spot: cents(13, 14, -1),
		},
		{
			Provider: "gcp", Region: "us-central1", Zone: "us-central1-a", Type: "n2 odd/name",
			At: []policy.Time{at(2, 0)}, Spot: cents(7),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	tr.To = at(6, 0)
	tr.WholeTo = tr.To
	tr.Synthetic, tr.About, tr.Meta = true, "made by hand", map[string]string{"seed": "7"}
	return tr
}

// random draws a trace of a few markets over some days, with gaps, equal
// neighbours and changes at midnight.
func random(t testing.TB, seed uint64) *Trace {
	t.Helper()
	key := chance.New(seed, "test", "trace")
	var series []Series
	for m := range 1 + key.At1(0).IntN(5) {
		k := key.At1(uint64(m + 1))
		s := Series{
			Provider: "aws", Region: []string{"r-1", "r-2"}[k.At1(0).IntN(2)],
			Zone: string(rune('a' + k.At1(1).IntN(3))), Type: "t" + string(rune('0'+m)),
		}
		now := at(1, 0)
		for i := range uint64(1 + k.At1(2).IntN(30)) {
			step := policy.Time(1+k.At2(3, i).IntN(12)) * 3600_000
			now += step
			if k.At2(4, i).Float() < 0.2 {
				now = dayOf(now) + day
			}
			price := k.At2(5, i).IntN(5) - 1
			v := unknown
			v.Spot, v.OnDemand = cents(price)[0], cents(10 * k.At2(6, i).IntN(2))[0]
			if k.At1(7).Float() < 0.3 {
				v.Available = int8(k.At2(8, i).IntN(3) - 1)
				if v.Available >= 0 && k.At1(9).Float() < 0.5 {
					v.Requested, v.Launched = 4, int32(v.Available)*int32(1+k.At2(12, i).IntN(4))
				}
				v.Hazard = float64(k.At2(9, i).IntN(3) - 1)
			}
			gap := int32(0)
			if k.At1(8).Float() < 0.3 {
				gap = int32(k.At2(10, i).IntN(3)) * 600
				v.Bids[1] = cents(k.At2(11, i).IntN(3))[0]
			}
			s.Append(now, v, gap)
		}
		series = append(series, s)
	}
	tr, err := New("random", series)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return tr
}

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(12) {
		want := small(t)
		if seed > 0 {
			want = random(t, seed)
		}
		dir := t.TempDir()
		if err := Write(filepath.Join(dir, "folder"), want); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(filepath.Join(dir, "file.parquet"), want); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"folder", "file.parquet"} {
			got, err := Open(filepath.Join(dir, name), ReadOptions{})
			if err != nil {
				t.Fatalf("%s, seed %d: %v", name, seed, err)
			}
			got.Name = want.Name
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, seed %d: read\n%+v\nwritten\n%+v", name, seed, got, want)
			}
		}
	}
}

// A window must hold the same whether the days before it are skipped (folder)
// or read (file).
func TestWindowsAgree(t *testing.T) {
	for seed := range uint64(12) {
		tr := random(t, seed+100)
		dir := t.TempDir()
		if err := Write(filepath.Join(dir, "folder"), tr); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(filepath.Join(dir, "file.parquet"), tr); err != nil {
			t.Fatal(err)
		}
		for d := 2; d < 9; d++ {
			o := ReadOptions{From: at(d, 5), To: at(d+2, 7)}
			a, errA := Open(filepath.Join(dir, "folder"), o)
			b, errB := Open(filepath.Join(dir, "file.parquet"), o)
			if (errA == nil) != (errB == nil) {
				t.Fatalf("seed %d, day %d: %v, but %v", seed, d, errA, errB)
			}
			if errA != nil {
				if !errors.Is(errA, ErrEmpty) || !errors.Is(errB, ErrEmpty) {
					t.Fatalf("seed %d, day %d: %v, %v", seed, d, errA, errB)
				}
				continue
			}
			if a.Digest != b.Digest || a.From != b.From || a.To != b.To {
				t.Fatalf("seed %d, day %d: folder\n%+v\nfile\n%+v", seed, d, a, b)
			}
			checkWindow(t, tr, a, o)
		}
	}
}

// checkWindow compares a window with the whole, instant by instant.
func checkWindow(t *testing.T, whole, window *Trace, o ReadOptions) {
	t.Helper()
	for now := o.start(); now <= o.To; now += 3600_000 {
		for i := range whole.Series {
			s := &whole.Series[i]
			want, _ := s.when(now)
			got := unknown
			for k := range window.Series {
				if compareSeries(s, &window.Series[k]) == 0 {
					got, _ = window.Series[k].when(now)
				}
			}
			if got != want && (got.live() || want.live()) {
				t.Fatalf("%s at %v: %+v instead of %+v", s.Name(), now, got, want)
			}
		}
	}
}

// when returns what holds at now.
func (s *Series) when(now policy.Time) (v Sample, ok bool) {
	v = unknown
	for i, at := range s.At {
		if at <= now {
			v, ok = s.Sample(i), true
		}
	}
	return v, ok
}

func TestFolderLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	if err := Write(dir, small(t)); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			got = append(got, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, d := range []string{"01", "02", "03", "04", "05"} {
		want = append(want, "provider=aws/region=us-east-1/date=2026-01-"+d+"/part-0.parquet")
	}
	for _, d := range []string{"02", "03", "04", "05"} {
		want = append(want, "provider=gcp/region=us-central1/date=2026-01-"+d+"/part-0.parquet")
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("files\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Each date starts with the prices in force, sorted by zone, type and time.
func TestDateFileStandsAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	if err := Write(dir, small(t)); err != nil {
		t.Fatal(err)
	}
	var rows []string
	o := ReadOptions{Regions: []string{"us-east-1"}, From: at(3, 0), To: at(3, 1)}
	err := scan(dir, o, func(s *scanner, read []row) {
		for _, r := range read {
			m := s.market(r.market)
			rows = append(rows, fmt.Sprintln(r.at.Std().Format("02T15"), m[2], m[3], m[4], int64(r.Spot)))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"02T00 us-east-1a c5.large Linux/UNIX 30000\n", "02T00 us-east-1a c5.large Windows 130000\n",
		"02T11 us-east-1a c5.large Windows 140000\n", "02T12 us-east-1a c5.large Linux/UNIX 40000\n",
		"02T13 us-east-1a c5.large Windows -1\n", "02T00 us-east-1b m5.large Linux/UNIX 50000\n",
		"03T00 us-east-1a c5.large Linux/UNIX 40000\n", "03T00 us-east-1b m5.large Linux/UNIX -1\n",
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(rows, ""), strings.Join(want, ""))
	}
}

func TestChoice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	if err := Write(dir, small(t)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    ReadOptions
		want string
	}{
		{ReadOptions{Providers: []string{"gcp"}}, "gcp/us-central1/us-central1-a/n2 odd/name"},
		{ReadOptions{Regions: []string{"us-central1"}}, "gcp/us-central1/us-central1-a/n2 odd/name"},
		{ReadOptions{Types: []string{"m5.large"}}, "aws/us-east-1/us-east-1b/m5.large"},
	} {
		tr, err := Open(dir, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if len(tr.Series) != 1 || tr.Series[0].Name() != c.want {
			t.Errorf("%+v: %v, want %s", c.o, tr.Series, c.want)
		}
	}
	for _, o := range []ReadOptions{
		{Types: []string{"none"}}, {Regions: []string{"none"}}, {From: at(20, 0)}, {To: at(1, 0) - 1},
	} {
		if _, err := Open(dir, o); !errors.Is(err, ErrEmpty) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestWriteTarget(t *testing.T) {
	tr := small(t)
	dir := t.TempDir() // empty: fine
	if err := Write(dir, tr); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, tr); err != nil { // a trace: replaced
		t.Fatal(err)
	}
	again, err := Open(dir, ReadOptions{})
	if err != nil || again.Digest != tr.Digest {
		t.Fatalf("after replacing: %v", err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "precious.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err = Write(other, tr)
	if !errors.Is(err, ErrTarget) || !strings.Contains(err.Error(), "precious.txt") {
		t.Errorf("a folder in use: %v", err)
	}
	if err := Write(filepath.Join(other, "precious.txt"), tr); !errors.Is(err, ErrTarget) {
		t.Errorf("a file: %v", err)
	}
	for _, parent := range []string{filepath.Dir(dir), other} {
		entries, _ := os.ReadDir(parent)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				t.Errorf("left behind: %s", e.Name())
			}
		}
	}
}

func TestNothingHalfWritten(t *testing.T) {
	tr := small(t)
	tr.Series[0].Spot[0] = -5
	dir := filepath.Join(t.TempDir(), "t")
	for _, err := range []error{Write(dir, tr), WriteFile(dir, tr)} {
		if !errors.Is(err, ErrValue) {
			t.Errorf("a negative price: %v", err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	series := func(at []policy.Time, spot []policy.Money) []Series {
		return []Series{{Provider: "p", Region: "r", Zone: "z", Type: "t", At: at, Spot: spot}}
	}
	twice := append(series([]policy.Time{1, 2}, cents(1, 2)), series([]policy.Time{1}, cents(1))...)
	for name, c := range map[string]struct {
		series []Series
		want   error
	}{
		"no markets":               {nil, ErrEmpty},
		"no prices":                {series(nil, nil), ErrEmpty},
		"falling time":             {series([]policy.Time{5, 4}, cents(1, 2)), ErrOrder},
		"one time twice":           {series([]policy.Time{5, 5}, cents(1, 2)), ErrOrder},
		"negative price":           {series([]policy.Time{5}, []policy.Money{-7}), ErrValue},
		"one name twice":           {twice, ErrValue},
		"short column":             {[]Series{{At: []policy.Time{1, 2}, Spot: cents(1, 2), Band: []int8{1}}}, ErrValue},
		"looked at later than now": {[]Series{{At: []policy.Time{1}, Spot: cents(1), ProbeGap: []int32{-1}}}, ErrValue},
		"negative bid":             {[]Series{{At: []policy.Time{1}, Spot: cents(1), Bids: [3][]policy.Money{{-1}}}}, ErrValue},
	} {
		if _, err := New("x", c.series); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// Digests that were printed before a column was added must keep identifying the same trace.
func TestDigestIsKept(t *testing.T) {
	tr := small(t)
	tr.Series[2].ProbeGap, tr.Series[2].Bids = nil, [3][]policy.Money{}
	tr.Series[2].Requested, tr.Series[2].Launched = nil, nil
	if err := tr.seal(); err != nil {
		t.Fatal(err)
	}
	const want = "d372d0a021027b4a320b62588458d313051e4486963e2cb0ad3e37ee0703bd4f"
	if got := fmt.Sprintf("%x", tr.Digest); got != want {
		t.Errorf("%s, was %s", got, want)
	}
}

// A row that restates the market at midnight says nothing of when it was looked
// at; in a foreign file it may, and that changes nothing.
func TestRestatedRowsHaveNoProbeGap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	if err := Write(dir, small(t)); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := scan(dir, ReadOptions{Regions: []string{"us-east-1"}}, func(s *scanner, rows []row) {
		for _, r := range rows {
			if s.market(r.market)[2] == "us-east-1b" {
				got = append(got, fmt.Sprintf("%v %v", r.at.Std().Format("02T15"), r.gap))
			}
		}
	})
	want := "01T03 0, 01T09 600, 02T00 -1, 03T00 0, 04T00 -1, 04T23 34, 05T00 -1"
	if err != nil || strings.Join(got, ", ") != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
}

// If another program has rewritten the files, it is unknown whether the prices were recorded.
// Writing them once more must not mark them as recorded.
func TestUnmarked(t *testing.T) {
	dir := t.TempDir()
	path := writeRows(t, []foreignRow{foreign(0, "z", 1), foreign(1, "z", 2)})
	tr, err := Open(path, ReadOptions{Provider: "p", Region: "r"})
	if err != nil || !tr.Unmarked || tr.Synthetic || !strings.Contains(strings.Join(tr.Warnings, ""), "recorded or generated") {
		t.Fatalf("%+v, %v", tr, err)
	}
	if err := Write(filepath.Join(dir, "t"), tr); err != nil {
		t.Fatal(err)
	}
	for _, want := range []*Trace{tr, small(t)} {
		if err := Write(filepath.Join(dir, "t"), want); err != nil {
			t.Fatal(err)
		}
		got, err := Open(filepath.Join(dir, "t"), ReadOptions{})
		if err != nil || got.Unmarked != want.Unmarked || got.Synthetic != want.Synthetic {
			t.Errorf("unmarked %v, synthetic %v, %v", got.Unmarked, got.Synthetic, err)
		}
	}
}

// That prices are scripted outlives writing, and is known of files that have only the
// line about them.
func TestScriptedIsKept(t *testing.T) {
	for _, marked := range []bool{false, true} {
		tr, dir := small(t), filepath.Join(t.TempDir(), "t")
		tr.Synthetic, tr.Scripted = false, marked
		if !marked {
			tr.About = AboutScripted + ", imported from s.json"
		}
		if err := Write(dir, tr); err != nil {
			t.Fatal(err)
		}
		if got, err := Open(dir, ReadOptions{}); err != nil || !got.Scripted || got.Synthetic {
			t.Errorf("marked %t: scripted %t, %v", marked, got.Scripted, err)
		}
	}
	tr, dir := small(t), filepath.Join(t.TempDir(), "t")
	if err := Write(dir, tr); err != nil {
		t.Fatal(err)
	}
	if got, err := Open(dir, ReadOptions{}); err != nil || got.Scripted {
		t.Errorf("a trace that is not scripted is called so: %v", err)
	}
}

func TestDigestSeesEverything(t *testing.T) {
	base := small(t).Digest
	for name, change := range map[string]func(*Series){
		"time":        func(s *Series) { s.At[0]++ },
		"spot":        func(s *Series) { s.Spot[0]++ },
		"on-demand":   func(s *Series) { s.OnDemand[0]++ },
		"available":   func(s *Series) { s.Available[0], s.Launched[0] = 0, 0 },
		"band":        func(s *Series) { s.Band[1]++ },
		"score":       func(s *Series) { s.Score[1]-- },
		"probe gap":   func(s *Series) { s.ProbeGap[1]++ },
		"requested":   func(s *Series) { s.Requested[0]++ },
		"launched":    func(s *Series) { s.Launched[0]++ },
		"bid":         func(s *Series) { s.Bids[2][3]++ },
		"which bid":   func(s *Series) { s.Bids[1], s.Bids[2] = s.Bids[2], nil },
		"zone":        func(s *Series) { s.Zone = "us-east-1c" },
		"product":     func(s *Series) { s.Product = "SUSE Linux" },
		"one removed": func(s *Series) { s.Cut(0, 3) },
	} {
		tr := small(t)
		change(&tr.Series[2])
		if err := tr.seal(); err != nil {
			t.Fatal(err)
		}
		if tr.Digest == base {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	hazard := small(t)
	hazard.Series[0].TrueHazard[0] = 0.126
	if err := hazard.seal(); err != nil {
		t.Fatal(err)
	}
	if hazard.Digest == base {
		t.Error("true hazard: the digest is the same")
	}
}

// An embedded trace is found by its name, by that behind "embedded:", and by what it was called
// before; no other path is taken for one.
func TestEmbeddedNames(t *testing.T) {
	for name, want := range map[string]string{
		"": Recorded, Recorded: Recorded, "embedded:" + Recorded: Recorded,
		"synthetic": "synthetic", "embedded:synthetic": "synthetic", "embedded": "synthetic", "embedded:default": "synthetic",
		"rackspace": "rackspace", "embedded:rackspace": "rackspace",
	} {
		tr, ok, err := EmbeddedNamed(name)
		if err != nil || !ok || tr.Name != want || tr.Synthetic != (want != Recorded) || EmbeddedName(name) != want {
			t.Errorf("%q: %v, %v, %v; want %q", name, tr, ok, err, want)
		}
	}
	for _, name := range []string{"default", "./synthetic", "synthetic/", "s3://synthetic", "prices", "Synthetic"} {
		if _, ok, err := EmbeddedNamed(name); ok || err != nil || EmbeddedName(name) != name {
			t.Errorf("%q is taken for an embedded trace: %v", name, err)
		}
	}
	if _, ok, err := EmbeddedNamed("embedded:none"); !ok || !errors.Is(err, ErrNotTrace) ||
		!strings.Contains(err.Error(), "aws-us-east-2, rackspace, synthetic") {
		t.Error(ok, err)
	}
}
