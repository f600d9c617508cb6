//go:build unix

package trace

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// The trace that is read: 5 million rows and a few more at midnights.
const (
	benchZones   = 6
	benchTypes   = 170
	benchDays    = 50
	benchChanges = 100 // of each market on each day
)

// benchTrace writes a trace of a thousand markets that walk in steps of a
// hundredth of a cent, and returns where.
func benchTrace(b *testing.B) string {
	b.Helper()
	begin := policy.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var series []Series
	for m := range benchZones * benchTypes {
		s := Series{
			Provider: "aws", Region: "us-east-1", Product: ProductLinux,
			Zone: "us-east-1" + string(rune('a'+m%benchZones)), Type: benchType(m / benchZones),
		}
		onDemand := policy.Money(100+m/benchZones) * 10_000
		price := onDemand * 3 / 10
		key := chance.New(1, "benchmark", s.Name())
		const gap = day / benchChanges
		for i := range benchDays * benchChanges {
			step := policy.Money(1+key.At2(0, uint64(i)).IntN(20)) * 100
			if key.At2(1, uint64(i)).Float() < 0.5 && price > 100_000 {
				step = -step
			}
			price += step
			jitter := policy.Time(key.At2(2, uint64(i)).IntN(int(gap/1000))) * 1000
			s.At = append(s.At, begin+policy.Time(i)*gap+jitter)
			s.Spot = append(s.Spot, price)
			s.OnDemand = append(s.OnDemand, onDemand)
		}
		series = append(series, s)
	}
	t, err := New("bench", series)
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), "trace")
	if err := Write(dir, t); err != nil {
		b.Fatal(err)
	}
	return dir
}

func benchType(i int) string {
	families := []string{"c5", "c6i", "c7i", "m5", "m6i", "m7i", "r5", "r6i", "r7i", "g5"}
	sizes := []string{
		"large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "9xlarge", "12xlarge", "16xlarge", "18xlarge",
		"24xlarge", "32xlarge", "48xlarge", "metal", "medium", "6xlarge", "3xlarge", "10xlarge",
	}
	return families[i%len(families)] + "." + sizes[i/len(families)]
}

// cpu returns the processor time that the process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchRead reports rows for each second of processor time, which other work
// on the machine does not distort.
func benchRead(b *testing.B, dir string, read func(dir string) (rows int64, err error)) {
	begin, rows := time.Duration(0), int64(0)
	b.ReportAllocs()
	for first := true; b.Loop(); first = false {
		if first {
			begin = cpu(b)
		}
		n, err := read(dir)
		if err != nil {
			b.Fatal(err)
		}
		rows += n
	}
	b.ReportMetric(float64(rows)/(cpu(b)-begin).Seconds()/1e6, "Mrows/CPU-s")
}

func scanRows(dir string) (n int64, err error) {
	err = scan(dir, ReadOptions{}, func(_ *scanner, rows []row) { n += int64(len(rows)) })
	return n, err
}

// BenchmarkRead reads time, market, spot and on-demand price.
func BenchmarkRead(b *testing.B) { benchRead(b, benchTrace(b), scanRows) }

// BenchmarkReadCompact reads the same of a compact trace.
func BenchmarkReadCompact(b *testing.B) { benchRead(b, benchCompact(b), scanRows) }

// BenchmarkCompact makes a trace compact.
func BenchmarkCompact(b *testing.B) {
	benchRead(b, benchTrace(b), func(dir string) (int64, error) {
		index, err := Compact(b.Context(), dir, nil, dir+"-compact")
		if err != nil {
			return 0, err
		}
		return index.Rows, nil
	})
}

// benchCompact returns the trace of benchTrace made compact.
func benchCompact(b *testing.B) string {
	b.Helper()
	dir := benchTrace(b)
	if _, err := Compact(b.Context(), dir, nil, dir+"-compact"); err != nil {
		b.Fatal(err)
	}
	return dir + "-compact"
}

// BenchmarkOpenPart opens a week of one family in two zones of a compact trace, and reports
// which share of the bytes it reads.
func BenchmarkOpenPart(b *testing.B) {
	dir := benchCompact(b)
	var families []string
	for i := range benchTypes {
		if name := benchType(i); strings.HasPrefix(name, "m5.") {
			families = append(families, name)
		}
	}
	begin := policy.TimeOf(time.Date(2026, 1, 12, 0, 0, 0, 0, time.UTC))
	var traffic Traffic
	for b.Loop() {
		traffic = Traffic{}
		o := ReadOptions{From: begin, To: begin + 7*day, Zones: []string{"us-east-1a", "us-east-1b"}, Types: families, Traffic: &traffic}
		if _, err := Open(dir, o); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*float64(traffic.Read)/float64(traffic.Stored), "%bytes")
}

// BenchmarkOpen reads them, makes series of them and computes the digest.
func BenchmarkOpen(b *testing.B) {
	benchRead(b, benchTrace(b), func(dir string) (int64, error) {
		_, err := Open(dir, ReadOptions{})
		return benchZones * benchTypes * benchDays * benchChanges, err
	})
}

func BenchmarkEmbedded(b *testing.B) {
	for b.Loop() {
		if _, err := Synthetic(); err != nil {
			b.Fatal(err)
		}
	}
}
