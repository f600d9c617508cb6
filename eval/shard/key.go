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

// A Build is the program that did the runs.
type Build struct {
	// Version is what the program calls itself, and Engine a digest of what it decides:
	// one version may be built of changed source.
	Version string `json:"version"`
	Engine  string `json:"engine"`
}

func (b Build) String() string { return fmt.Sprintf("%s (engine %.12s)", b.Version, b.Engine) }

// An Input is what the runs of a case and policy are made of. All are digests in
// hexadecimal.
type Input struct {
	// Scenario is the digest of the file, Trace that of the prices in the window, and Bound that of
	// all inputs of a run: these two, the catalog of instance types and the changes by flags.
	Scenario string `json:"scenario"`
	Trace    string `json:"trace"`
	Bound    string `json:"bound"`

	// Files is that of the model and of the runtime file that the policy names; empty
	// where it names none.
	Files string `json:"files,omitempty"`
}

// A Keys makes keys. It may be used by several goroutines.
type Keys struct {
	Build Build

	// Files returns the digest of the files that a policy names in w, empty for none.
	Files func(policy string, w *scenarios.BoundScenario) (string, error)

	mu     sync.Mutex
	inputs map[source]Input
}

// A source is what jobs that differ in their seeds alone are made of.
type source struct {
	bound  *scenarios.BoundScenario
	policy string
}

// Of returns the key of j: a digest of what determines what comes of it.
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

// Input returns what j is made of.
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

// inputOf returns what every job in w is made of.
func inputOf(w *scenarios.BoundScenario) (Input, error) {
	bare := *w
	bare.Trace, bare.Warnings, bare.Deviation = scenarios.TraceInfo{}, nil, "" // which say where it comes from, and change no run
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(&bare); err != nil {
		return Input{}, fmt.Errorf("%s: its digest: %w", w.Name, err)
	}
	return Input{Scenario: hex.EncodeToString(w.Digest[:]), Trace: hex.EncodeToString(w.TraceDigest[:]),
		Bound: hex.EncodeToString(sum.Sum(nil))}, nil
}
