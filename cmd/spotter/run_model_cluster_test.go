package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runcmd "github.com/spotter-dev/spotter/cmd/spotter/internal/run"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/test/testenv"
)

// TestRunModelCall refuses a bundle of --policies that is broken, missing or without
// what runs it, before it reaches for a cluster.
func TestRunModelCall(t *testing.T) {
	wrongCallIs(t, "models.timeout: Invalid value: \"0s\"", "run", "--config", configured(t, "models: {timeout: 0s}"))
	wrongCallIs(t, "bundle is missing", "run", "--policies", "model")
	wrongCallIs(t, "nowhere", "run", "--policies", "model:bundle=nowhere")
	withONNX(t)
	elsewhere, spoilt := copied(t), copied(t)
	manifest := filepath.Join(elsewhere, "MODEL_MANIFEST.json")
	text, err := os.ReadFile(manifest)
	if err == nil {
		err = os.Chmod(manifest, 0o600)
	}
	if err == nil {
		err = os.WriteFile(manifest, bytes.ReplaceAll(text, []byte(`"aws"`), []byte(`"gcp"`)), 0o600)
	}
	if err == nil {
		err = os.Remove(filepath.Join(spoilt, "tft.onnx.data"))
	}
	if err != nil {
		t.Fatal(err)
	}
	wrongCallIs(t, `MODEL_MANIFEST.json: cloud: the bundle is for "gcp"`, "run", "--policies", "portfolio:bundle="+elsewhere)
	wrongCallIs(t, "tft.onnx.data: the manifest lists it", "run", "--policies", "portfolio:bundle="+spoilt)
	without(t)
	wrongCallIs(t, "ONNX Runtime is not available", "run", "--policies", "model:bundle="+bundle(t))
}

// modelPool waits until the pool of a stage says of its model what it is to say.
func modelPool(t *testing.T, s *stage, status metav1.ConditionStatus, reason string) {
	t.Helper()
	testenv.Eventually(t, "the pool says "+reason, func() error {
		var p v1alpha1.CapacityPool
		if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(p.Status.Conditions, runcmd.ConditionModel); c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
}

// twoDays writes a trace of one market for the stage's pool.
func twoDays(t *testing.T) string {
	t.Helper()
	onDemand, _ := catalog.OnDemand(catalog.AWS, "us-east-1", "m5.large")
	x := trace.Series{Provider: catalog.AWS, Region: "us-east-1", Zone: "us-east-1a", Type: "m5.large"}
	for h := -48; h <= 0; h++ {
		x.At = append(x.At, policy.TimeOf(time.Now().Add(time.Duration(h)*time.Hour)))
		x.Spot, x.OnDemand = append(x.Spot, onDemand/policy.Money(3-h%2)), append(x.OnDemand, onDemand)
	}
	all, err := trace.New("two days", []trace.Series{x})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "prices")
	if err := trace.Write(dir, all); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRunModel runs the controller with a bundle that policies names and then with
// one that the pool names and that is not there at first. What it decided is taken
// again without the bundle and without what runs it.
func TestRunModel(t *testing.T) {
	withONNX(t)
	s := newStage(t, shadowRules)
	prices, bundled, dir := twoDays(t), copied(t), filepath.Join(t.TempDir(), "record")
	settings := []string{"prices: {trace: " + prices + "}", "recording: {dir: " + dir + ", complete: 1s}", "stepInterval: 2s"}
	a := s.start(t, append(settings, "policies: model:bundle="+bundled)...)
	modelPool(t, s, metav1.ConditionTrue, "Scored")
	body := get(t, a.metric)
	for _, want := range []string{`spotter_model_up{bundle="` + bundled + `"`,
		`spotter_model_forecasts_total{outcome="scored"}`, `spotter_model_values_total{outcome="valued"}`} {
		if !strings.Contains(body, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	stop(t, a)

	folder := t.TempDir()
	later := filepath.Join(folder, "later")
	settings = append(settings, "models: {dir: "+folder+"}")
	if _, err := changePool(t.Context(), s, &v1alpha1.PolicyRef{Name: "model", Parameters: map[string]string{"bundle": "later"}}); err != nil {
		t.Fatal(err)
	}
	b := s.start(t, append(settings, "policies: manifest")...)
	modelPool(t, s, metav1.ConditionFalse, runcmd.ReasonModelUnusable)
	stop(t, b)
	if err := os.Rename(bundled, later); err != nil {
		t.Fatal(err)
	}
	b = s.start(t, append(settings, "policies: manifest")...)
	modelPool(t, s, metav1.ConditionTrue, "Scored")
	stop(t, b)

	if err := os.RemoveAll(later); err != nil {
		t.Fatal(err)
	}
	without(t)
	code, out, stderr := call(t, "replay", dir)
	if code != cli.ExitOK || !strings.Contains(out, "model:bundle="+bundled+", then manifest") ||
		!strings.Contains(out, "every plan is the same") {
		t.Errorf("replay: exit code %d\n%s%s", code, out, stderr)
	}
	if strings.Contains(stderr, "closed form") {
		t.Errorf("a recording with forecasts of a model is warned of: %s", stderr)
	}
}

// TestReplayWithoutForecasts says that a recording has no forecasts of a model for a
// policy that decides on them.
func TestReplayWithoutForecasts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "steps")
	if code, _, stderr := call(t, "sim", file(t, "tiny.yaml", tiny), "--policy", "static", "--record", dir); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	const says = "portfolio:bundle=nowhere decides on the closed form"
	if code, _, stderr := call(t, "replay", dir, "--policy", "portfolio:bundle=nowhere", "--show",
		"1"); code == cli.ExitInvalid || strings.Count(stderr, says) != 1 {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if _, _, stderr := call(t, "replay", dir, "--policy", "portfolio", "--show", "1"); strings.Contains(stderr, "closed form") {
		t.Errorf("a policy without a bundle: %s", stderr)
	}
}

// stop asks a replica to end and waits until it has.
func stop(t *testing.T, r *replica) {
	t.Helper()
	if err := r.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-r.End; err != nil {
		t.Errorf("asked to end it says %v", err)
	}
}

// changePool has the pool of a stage name a policy.
func changePool(ctx context.Context, s *stage, to *v1alpha1.PolicyRef) (*v1alpha1.CapacityPool, error) {
	var p v1alpha1.CapacityPool
	if err := s.env.Client.Get(ctx, client.ObjectKey{Name: "web"}, &p); err != nil {
		return nil, err
	}
	before := p.DeepCopy()
	p.Spec.Policy = to
	return &p, s.env.Client.Patch(ctx, &p, client.MergeFrom(before))
}
