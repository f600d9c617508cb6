// Package tracetest makes small traces for tests.
package tracetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// At returns an hour of a day in January 2026.
func At(day, hour int) policy.Time {
	return policy.TimeOf(time.Date(2026, 1, day, hour, 0, 0, 0, time.UTC))
}

// Cents converts prices in cents; a negative price means not offered.
func Cents(prices ...int) []policy.Money {
	var all []policy.Money
	for _, c := range prices {
		m := policy.Money(c) * policy.Dollar / 100
		if c < 0 {
			m = policy.NoPrice
		}
		all = append(all, m)
	}
	return all
}

// New returns a trace that ends at to.
func New(t testing.TB, name string, to policy.Time, series ...trace.Series) *trace.Trace {
	t.Helper()
	tr, err := trace.New(name, series)
	if err != nil {
		t.Fatal(err)
	}
	tr.To = to
	return tr
}

// Alternating returns a trace of eight days with one instance type in a zone of each of two
// regions. A node is available from each even hour to the next odd hour and unavailable until the
// next even hour; the market is probed every minute.
func Alternating(t testing.TB, name string, from policy.Time) *trace.Trace {
	t.Helper()
	var all []trace.Series
	for _, zone := range []string{"us-east-1a", "us-west-2a"} {
		s := trace.Series{Provider: "aws", Region: zone[:9], Zone: zone, Type: "p3.2xlarge"}
		for h := range 8 * 24 {
			s.At, s.Spot = append(s.At, from.Add(time.Duration(h)*time.Hour)), append(s.Spot, policy.Dollar)
			s.Available, s.ProbeGap = append(s.Available, int8(1-h%2)), append(s.ProbeGap, 60)
		}
		all = append(all, s)
	}
	tr, err := trace.New(name, all)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Files returns the contents of all files below dir, by path.
func Files(t interface{ Fatal(...any) }, dir string) map[string]string {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
