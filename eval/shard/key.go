package shard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/scenarios"
)

// A Build identifies the program that executed runs.
type Build struct {
	// Version is the version that the program reports. Engine is a digest of the code that affects
	// decisions, because builds of the same version may have different source code.
	Version string `json:"version"`
	Engine  string `json:"engine"`
}

func (b Build) String() string { return fmt.Sprintf("%s (engine %.12s)", b.Version, b.Engine) }

// An Input contains the inputs of the runs of a case and policy, as hexadecimal digests.
type Input struct {
	// Scenario is the digest of the scenario file, Trace that of the prices in the window, and
	// Bound that of all inputs of a run: these two, the catalog of instance types and the changes
	// by flags.
	Scenario string `json:"scenario"`
	Trace    string `json:"trace"`
	Bound    string `json:"bound"`

	// Files is the digest of the model and runtime files that the policy names; empty if it names
	// no files.
	Files string `json:"files,omitempty"`
}

// A Keys computes keys. It is safe for concurrent use.
type Keys struct {
	Build Build

	// Files returns the digest of the files that a policy names in w, "" if it names no files.
	Files func(policy string, w *scenarios.BoundScenario) (string, error)

	mu     sync.Mutex
	inputs map[source]Input
}

// A source identifies the inputs of jobs that only differ in their seeds.
type source struct {
	bound  *scenarios.BoundScenario
	policy string
}

// Of returns the key of j: a digest of everything that determines its result.
func (k *Keys) Of(j eval.Job) (string, error) {
	in, err := k.Input(j)
	if err != nil {
		return "", err
	}
	return digestOf(struct {
		Build  Build
		Input  Input
		Policy string
		Seed   uint64
	}{k.Build, in, j.Policy, j.Seed}), nil
}

// Input returns the inputs of j.
func (k *Keys) Input(j eval.Job) (Input, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.input(source{j.Bound, j.Policy})
}

func (k *Keys) input(x source) (in Input, err error) {
	if in, ok := k.inputs[x]; ok {
		return in, nil
	}
	if x.policy == eval.OracleName {
		in, err = inputOf(x.bound)
	} else if in, err = k.input(source{x.bound, eval.OracleName}); err == nil {
		in.Files, err = k.Files(x.policy, x.bound)
	}
	if err != nil {
		return Input{}, err
	}
	if k.inputs == nil {
		k.inputs = map[source]Input{}
	}
	k.inputs[x] = in
	return in, nil
}

// inputOf returns the common inputs of all jobs in w.
func inputOf(w *scenarios.BoundScenario) (Input, error) {
	bare := *w
	bare.Trace, bare.Warnings, bare.Deviation = scenarios.TraceInfo{}, nil, "" // these describe the origin of w, and do not affect runs
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(&bare); err != nil {
		return Input{}, fmt.Errorf("%s: its digest: %w", w.Name, err)
	}
	return Input{Scenario: hex.EncodeToString(w.Digest[:]), Trace: hex.EncodeToString(w.TraceDigest[:]),
		Bound: hex.EncodeToString(sum.Sum(nil))}, nil
}
