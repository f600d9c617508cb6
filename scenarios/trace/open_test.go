package trace

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

var seedFlag = flag.Uint64("seed", 0, "draw from this seed and not from the clock")

// A plainRow has prices, a probedRow what probes found as well.
type plainRow struct {
	Time     time.Time `parquet:"time,timestamp(millisecond)"`
	Zone     string    `parquet:"zone,dict"`
	Type     string    `parquet:"instance_type,dict"`
	Spot     *float64  `parquet:"spot_price,optional,dict"`
	OnDemand *float64  `parquet:"on_demand_price,optional"`
}

type probedRow struct {
	Time      time.Time `parquet:"time,timestamp(millisecond)"`
	Zone      string    `parquet:"zone,dict"`
	Type      string    `parquet:"instance_type,dict"`
	Spot      *float64  `parquet:"spot_price,optional,dict"`
	Available *bool     `parquet:"available,optional"`
	ProbeGap  *int32    `parquet:"probe_gap,optional"`
}

// drawDay draws the rows of a day: some of the markets, whose names are as
// long as each other's, with few prices, so that many rows repeat the one
// before. It adds them to series, one interval for each row.
func drawDay(key chance.Key, date int, probed bool, series []Series) (plain []plainRow, with []probedRow) {
	draw, n := key.At1(uint64(date)), uint64(0)
	dice := func(sides int) int { n++; return draw.At1(n).IntN(sides) }
	price := func(null int) (*float64, policy.Money) {
		if dice(null) == 0 {
			return nil, policy.NoPrice
		}
		v := float64(1+dice(3)) / 4
		return &v, policy.Dollars(v)
	}
	for k := range series {
		s := &series[k]
		if dice(3) == 0 {
			continue
		}
		for i := range 1 + dice(4) {
			now := at(date, float64(5*i))
			v, gap := unknown, int32(0)
			var spot, onDemand *float64
			spot, v.Spot = price(5)
			if probed {
				row := probedRow{now.Std(), s.Zone, s.Type, spot, nil, nil}
				if yes := dice(2) == 1; dice(3) > 0 {
					v.Available = map[bool]int8{true: 1}[yes]
					gap = int32(dice(2))
					row.Available, row.ProbeGap = &yes, &gap
				}
				with = append(with, row)
			} else {
				if onDemand, v.OnDemand = price(3); onDemand == nil {
					v.OnDemand = 0
				}
				plain = append(plain, plainRow{now.Std(), s.Zone, s.Type, spot, onDemand})
			}
			s.Append(now, v, gap)
		}
	}
	return plain, with
}

// Whatever the files of a region have, and in whatever order files with prices
// only stand among files with more, the series are those that come of their
// rows one by one.
func TestFilesOfDifferentColumns(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for round := range 12 {
		key := chance.New(seed, "mixed files", fmt.Sprint(round))
		dir := t.TempDir()
		var want []Series
		for r, region := range []string{"r1", "r2"} {
			series := make([]Series, 6)
			for k := range series {
				series[k] = Series{
					Provider: "p", Region: region, Zone: fmt.Sprintf("%s-%d", region, k%2),
					Type: fmt.Sprintf("type-%d", k/2), Product: ProductLinux,
				}
			}
			for date := 1; date <= 6; date++ {
				probed := key.At2(1<<32, uint64(10*r+date)).IntN(3) == 0
				plain, with := drawDay(key.At1(uint64(r)), date, probed, series)
				path := writeRows(t, plain)
				if probed {
					path = writeRows(t, with)
				}
				if len(plain)+len(with) > 0 {
					place(t, path, dir, region, date)
				}
			}
			want = append(want, series...)
		}
		wanted, err := New("want", want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Open(dir, ReadOptions{})
		if err != nil {
			t.Fatalf("%v; repeat with -seed=%d", err, seed)
		}
		if !reflect.DeepEqual(got.Series, wanted.Series) || got.Digest != wanted.Digest {
			t.Fatalf("round %d: read %+v\nwant %+v\nrepeat with -seed=%d", round, got.Series, wanted.Series, seed)
		}
	}
}

// place moves a file to where the trace at dir has that of a date.
func place(t *testing.T, path, dir, region string, date int) {
	t.Helper()
	folder := filepath.Join(dir, "provider=p", "region="+region, fmt.Sprintf("date=2026-01-%02d", date))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, filepath.Join(folder, "part-0.parquet")); err != nil {
		t.Fatal(err)
	}
}

// A market may have more rows than are read at once, and continue in the next row group.
func TestLongRegion(t *testing.T) {
	const rows = 66_000
	var series []Series
	for k := range 3 {
		s := Series{Provider: "p", Region: "r", Zone: "z", Type: fmt.Sprintf("t%d", k), Product: ProductLinux}
		for i := range rows {
			s.At = append(s.At, at(1, 0)+policy.Time(i)*60_000)
			s.Spot = append(s.Spot, policy.Money(1+(i+k)%1000))
			s.OnDemand = append(s.OnDemand, policy.Money(5000+i/10_000))
		}
		series = append(series, s)
	}
	want, err := New("long", series)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "long.parquet")
	if err := WriteFile(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := Open(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != want.Digest || !reflect.DeepEqual(got.Series, want.Series) {
		t.Error("what was read is not what was written")
	}
}

// The checksum of the metadata counts in each file, also where those before
// were sound.
func TestLaterMetadataAreChecked(t *testing.T) {
	dir := t.TempDir()
	for date := 1; date <= 2; date++ {
		meta := map[string]string{metaSchema: schemaVersion, metaAbout: "as recorded"}
		sum := headerSum(meta)
		if date == 2 {
			meta[metaAbout] = "as wrecked"
		}
		spot := 0.5
		path := writeRows(t, []plainRow{{at(date, 0).Std(), "z", "t", &spot, nil}},
			parquet.KeyValueMetadata(metaSchema, schemaVersion), parquet.KeyValueMetadata(metaAbout, meta[metaAbout]),
			parquet.KeyValueMetadata(metaSum, sum))
		place(t, path, dir, "r", date)
	}
	_, err := Open(dir, ReadOptions{})
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "checksum") || !strings.Contains(err.Error(), "2026-01-02") {
		t.Errorf("the second file is damaged: %v", err)
	}
}
