package whatif

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// TestLook says what a run has come to so far.
func TestLook(t *testing.T) {
	folder := os.Getenv("SPOTTER_WHATIF_LOOK")
	if folder == "" {
		t.Skip("SPOTTER_WHATIF_LOOK names no run")
	}
	text, err := os.ReadFile(filepath.Join(folder, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var run struct {
		Begin, End time.Time
		Prometheus string
	}
	if err := json.Unmarshal(text, &run); err != nil {
		t.Fatal(err)
	}
	to := run.End
	if x := os.Getenv("SPOTTER_WHATIF_TO"); x != "" {
		if to, err = time.Parse(time.RFC3339, x); err != nil {
			t.Fatal(err)
		}
	}
	if now := time.Now().Truncate(time.Minute); now.Before(to) {
		to = now
	}
	from := run.Begin
	if x := os.Getenv("SPOTTER_WHATIF_FROM"); x != "" {
		if from, err = time.Parse(time.RFC3339, x); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "base", "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("SPOTTER") == "" {
		m := newMarket(t)
		var base figures
		for i, v := range variants {
			f := measure(t, filepath.Join(folder, v.name, "audit.log"), m, from, to)
			if i == 0 {
				base = f
			}
			t.Logf("%-9s node-hours %7.2f  $%.4f (%+.2f %%)  evictions %d  launched %d", v.name, f.NodeHours, f.Dollars, 100*(f.Dollars/base.Dollars-1), f.Evictions, f.Launched)
		}
		return
	}
	x := take(t, folder, cfg, run.Prometheus, from, to)
	write(t, "/tmp/real/look.json.gz", x)
	x.hold(t)
}
