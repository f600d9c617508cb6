package importer

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/test/nightly"
)

// A rawRow is a row of a recording as the tests read it, by other means than
// the importer: what holds of a market from an instant on.
type rawRow struct {
	at     int64 // ms
	values string
}

// A rawColumns says where a recording has what. The fields of values are
// compared as text, in which an unknown is "-".
type rawColumns struct {
	market []string // columns whose values name a market
	values []string // prices
}

var recordedPrices = map[string]rawColumns{
	"prices/aws_skypilot_us-east-1_2022-12_2023-10.csv.gz": {[]string{"region", "az", "instance_type"},
		[]string{"spot", "ondemand"}},
	"prices/aws_skypilot_us-east-2_2023-11_2024-02.csv.gz": {[]string{"region", "az", "instance_type"},
		[]string{"spot", "ondemand"}},
	"prices/aws_api_us-east-1_2021-03-02_2021-04-30.csv.gz":         {[]string{"", "az", "instance_type"}, []string{"price"}},
	"prices/aws_api_sa-east-1_2019-12-31_2020-03-30.csv.gz":         {[]string{"", "az", "instance_type"}, []string{"price"}},
	"prices/aws_bidding_era_us-east-1_2016-02-24_2016-03-25.csv.gz": {[]string{"", "az", "instance_type"}, []string{"price"}},
	"prices/rackspace_weekly_2026-05-26_2026-07-13.csv": {[]string{"region", "region", "serverclass"},
		[]string{"market_price", "", "bid_p20", "bid_p50", "bid_p80"}},
	"prices/azure_coroot_eastus_westeurope_2023-02_2024-08.csv.gz": {[]string{"region", "region", "instance_type"},
		[]string{"spot", "ondemand"}},
	"prices/gcp_skypilot_us-central1_us-east1_2022-11_2024-06.csv.gz": {[]string{"region", "az", "instance_type"},
		[]string{"spot", "ondemand"}},
}

// Every recording keeps every change, in number and in value, from its rows
// through the import and the files.
func TestRecordedPrices(t *testing.T) {
	for name, columns := range recordedPrices {
		t.Run(strings.TrimPrefix(name, "prices/"), func(t *testing.T) {
			path := policytest.Recording(t, name)
			if info, err := os.Stat(path); err == nil && info.Size() > int64(nightly.Count(1.1e6, 1e9)) {
				t.Skip("it takes long: make nightly reads it")
			}
			tr, report, err := Import([]string{path}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			want, rows := rawChanges(t, path, columns)
			if report.Rows != rows || report.Bad != 0 || report.Duplicates+report.Joined+report.Repeats+report.Changes != rows {
				t.Errorf("%d rows: %+v", rows, report)
			}
			compareRaw(t, tr, want)
			compareStored(t, tr)
		})
	}
}

// compareRaw compares a trace with the changes of each market of a recording.
func compareRaw(t *testing.T, tr *trace.Trace, want map[string][]rawRow) {
	t.Helper()
	if len(tr.Series) != len(want) {
		t.Errorf("%d markets, the recording has %d", len(tr.Series), len(want))
	}
	withdrawn := 0
	for i := range tr.Series {
		s := &tr.Series[i]
		var got []rawRow
		for k, at := range s.At {
			v := s.Sample(k)
			if v.Spot == policy.NoPrice {
				withdrawn++
			}
			texts := []string{moneyText(v.Spot, policy.NoPrice), moneyText(v.OnDemand, 0)}
			for _, bid := range v.Bids {
				texts = append(texts, moneyText(bid, 0))
			}
			got = append(got, rawRow{int64(at), strings.Join(texts, " ")})
		}
		if rows := want[s.Zone+"/"+s.Type]; !slices.Equal(got, rows) {
			t.Errorf("%s: %d changes, the recording has %d; the first ones are %v and %v",
				s.Name(), len(got), len(rows), got[:min(3, len(got))], rows[:min(3, len(rows))])
		}
	}
	t.Logf("%d markets, %d intervals without an offer", len(tr.Series), withdrawn)
}

// compareStored compares a trace with itself, written and read: at night as a folder of a file for
// each date, else as one file, which takes a tenth of the time.
func compareStored(t *testing.T, tr *trace.Trace) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "t")
	write := trace.WriteFile
	if nightly.Count(0, 1) == 1 {
		write = trace.Write
	}
	if err := write(dir, tr); err != nil {
		t.Fatal(err)
	}
	got, err := trace.Open(dir, trace.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != tr.Digest || got.From != tr.From || got.To != tr.To || got.About != tr.About {
		t.Errorf("stored %v to %v, read %v to %v; digests %x, %x", tr.From, tr.To, got.From, got.To, tr.Digest, got.Digest)
	}
	if !reflect.DeepEqual(got.Series, tr.Series) {
		t.Error("what is read is not what was stored")
	}
}

func moneyText(m, unknown policy.Money) string {
	if m == unknown {
		return "-"
	}
	return strconv.FormatInt(int64(m), 10)
}

// rawChanges reads a CSV and returns the changes of each market by its zone and
// type, and the number of rows.
func rawChanges(t *testing.T, path string, columns rawColumns) (changes map[string][]rawRow, rows int) {
	t.Helper()
	r := csv.NewReader(openRaw(t, path))
	r.ReuseRecord = true
	header, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	place := func(name string) int { return slices.Index(header, name) }
	zone, kind, time := place(columns.market[1]), place(columns.market[2]), place("t")
	var values []int
	for _, name := range columns.values {
		values = append(values, place(name))
	}
	all := map[string][]rawRow{}
	for ; ; rows++ {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seconds, err := strconv.ParseInt(record[time], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		texts := []string{"-", "-", "-", "-", "-"}
		for i, at := range values {
			if at >= 0 && record[at] != "" && record[at] != "GONE" {
				x, err := strconv.ParseFloat(record[at], 64)
				if err != nil {
					t.Fatal(err)
				}
				if texts[i] = strconv.FormatInt(int64(x*1e6+0.5), 10); i > 0 && x == 0 {
					texts[i] = "-" // 0 is neither an on-demand price nor a bid
				}
			}
		}
		name := record[kind]
		if strings.HasPrefix(name, "acc:") {
			name = strings.TrimSuffix(name, ".0") // the count, which became a float in May 2023
		}
		key := record[zone] + "/" + name
		all[key] = append(all[key], rawRow{seconds * 1000, strings.Join(texts, " ")})
	}
	for key, list := range all {
		slices.SortStableFunc(list, func(a, b rawRow) int { return cmp.Compare(a.at, b.at) })
		var kept []rawRow
		for i, row := range list {
			last := i+1 < len(list) && list[i+1].at == row.at // a later row holds
			if !last && (len(kept) == 0 || kept[len(kept)-1].values != row.values) {
				kept = append(kept, row)
			}
		}
		all[key] = kept
	}
	return all, rows
}

func openRaw(t *testing.T, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if !strings.HasSuffix(path, ".gz") {
		return bufio.NewReader(f)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// Availability that was sampled keeps each change, with the sample before it,
// and the prices with it.
func TestRecordedAvailability(t *testing.T) {
	for _, c := range []struct {
		folder, kind string
		begin        time.Time
	}{
		{"availability/skypilot/availability/1-node/aws-02-15-2023", "p3.2xlarge", time.Date(2023, 2, 15, 0, 0, 0, 0, time.UTC)},
		{"availability/skypilot/preemption/1-node/aws-04-22-2023", "p3.2xlarge", time.Date(2023, 4, 22, 0, 0, 0, 0, time.UTC)},
		{"availability/skypilot/preemption/1-node/aws-04-19-2023", "r5.16xlarge", time.Date(2023, 4, 19, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(c.folder, func(t *testing.T) {
			folder := policytest.Recording(t, c.folder)
			srcs, err := filepath.Glob(filepath.Join(folder, "*.json"))
			if err != nil || len(srcs) == 0 {
				t.Fatalf("%d files: %v", len(srcs), err)
			}
			tr, report, err := Import(srcs, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(tr.Series) != len(srcs) || report.Bad != 0 || tr.From != policy.TimeOf(c.begin) {
				t.Errorf("%d files, from %v: %+v", len(srcs), tr.From, report)
			}
			for i, src := range srcs {
				compareSamples(t, &tr.Series[i], src, c.kind, tr.From)
			}
			compareStored(t, tr)
		})
	}
}

// compareSamples compares the series of a market with the samples in src.
func compareSamples(t *testing.T, s *trace.Series, src, kind string, begin policy.Time) {
	t.Helper()
	var rec struct {
		Metadata map[string]int64
		Data     []int
		Prices   []float64
	}
	text, err := os.ReadFile(src)
	if err == nil {
		err = json.Unmarshal(text, &rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	if zone, _, _ := strings.Cut(filepath.Base(src), "_"); s.Zone != zone || s.Type != kind || s.Region != zone[:len(zone)-1] {
		t.Errorf("%s is taken for %s", src, s.Name())
	}
	gap := rec.Metadata["gap_seconds"]
	n := 0
	for i, up := range rec.Data {
		priced := i > 0 && rec.Prices != nil && rec.Prices[i] != rec.Prices[i-1]
		if i > 0 && up == rec.Data[i-1] && !priced {
			continue
		}
		if n == len(s.At) || s.At[n] != begin+policy.Time(int64(i)*gap*1000) || s.Available[n] != int8(up) ||
			i > 0 && int64(s.ProbeGap[n]) != gap || i == 0 && s.ProbeGap[n] != 0 ||
			rec.Prices != nil && s.Spot[n] != policy.Dollars(rec.Prices[i]) {
			t.Fatalf("%s: change %d of sample %d is missing or other", s.Name(), n, i)
		}
		n++
	}
	if n != len(s.At) {
		t.Errorf("%s: %d changes, the recording has %d", s.Name(), len(s.At), n)
	}
}

// The recorded fleet was whole at first and was first hit in its 34th minute.
func TestRecordedFleet(t *testing.T) {
	path := policytest.Recording(t, "availability/bamboo/p3-trace.csv")
	begin := policy.TimeOf(time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC))
	tr, report, err := Import([]string{path}, Options{Zone: "us-east-1a", From: begin})
	if err != nil {
		t.Fatal(err)
	}
	s := &tr.Series[0]
	minute := policy.Time(60_000)
	if len(tr.Series) != 1 || s.Name() != "aws/us-east-1/us-east-1a/p3.2xlarge" || report.Rows != 344 || report.Bad != 0 ||
		!reflect.DeepEqual(s.At[:4], []policy.Time{begin, begin + 34*minute, begin + 43*minute, begin + 51*minute}) ||
		!reflect.DeepEqual(s.Available[:4], []int8{1, 0, 1, 0}) || !reflect.DeepEqual(s.ProbeGap[:2], []int32{0, 60}) ||
		tr.To != begin+682*minute {
		t.Errorf("%+v to %v; %+v", s, tr.To, report)
	}
	compareStored(t, tr)
}
