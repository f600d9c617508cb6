package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// FilesOf returns a hexadecimal digest of the bundles and runtime files that a policy names in w.
// It is empty if the policy names none. It does not need ONNX Runtime.
func (r *Runner) FilesOf(spec string, w *scenarios.BoundScenario) (string, error) {
	sum, named := sha256.New(), false
	_, err := registry.New(spec, registry.Options{
		Manifests: input.Manifests(w),
		OpenBundle: func(dir string) error {
			b, err := bundles.Read(dir, bundles.Cloud)
			if err == nil {
				named = true
				fmt.Fprintf(sum, "bundle %s\n", b.Fingerprint)
			}
			return err
		},
		ReadRuntime: func(path string) (spotvortex.Config, error) {
			c, err := r.ReadRuntime(path)
			if err == nil {
				named = true
				fmt.Fprintf(sum, "runtime %+v\n", c)
			}
			return c, err
		},
	})
	if err != nil || !named {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// engineIntensity is the factor on the rate of reclaims in [Runner.Engine]. Without it there would
// be no reclaim in a week.
const engineIntensity = 100

// Engine returns a hexadecimal digest of the decisions of this program: of the events of a day in a
// small embedded scenario, with many reclaims, under the policies that are compared by default. It
// is short, since every part of a comparison computes it, and equal on every platform. For a
// version that several sources may share, such as that of a modified checkout, it includes the
// digest of the program's file.
func (r *Runner) Engine(ctx context.Context, version string) (string, error) {
	sum := sha256.New()
	sc, err := scenarios.Load("tiny")
	if err != nil {
		return "", err
	}
	tr, err := trace.Synthetic()
	if err != nil {
		return "", err
	}
	intensity := float64(engineIntensity)
	sc.Duration, sc.WarmUp = 24*time.Hour, 0
	w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{Intensity: &intensity})
	if err != nil {
		return "", err
	}
	for _, name := range eval.DefaultPolicies() {
		result, err := r.Run(ctx, eval.Job{Case: eval.Case{Scenario: sc.Name, Bound: w}, Policy: name, Seed: 1})
		if err != nil {
			return "", fmt.Errorf("the digest of what this program decides: %s in %s: %w", name, sc.Name, err)
		}
		sum.Write(result.Hash[:])
	}
	if version == "unknown" || strings.HasSuffix(version, "-dirty") {
		path, err := os.Executable()
		if err != nil {
			return "", err
		}
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		if _, err := io.Copy(sum, f); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
