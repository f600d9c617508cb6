package shard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/eval"
)

// A Plan describes a comparison independently of the machine.
type Plan struct {
	// Args are the arguments of `spotter eval` that affect the result.
	Args []string `json:"args"`

	// Files maps the names of scenario files among Args to their contents.
	Files map[string]string `json:"files,omitempty"`
}

// Digest returns the hexadecimal SHA-256 of p.
func (p *Plan) Digest() string { return digestOf(p) }

// digestOf returns the hexadecimal SHA-256 of v as JSON. It panics if v cannot be encoded.
func digestOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("shard: " + err.Error()) // v is made of plain values
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// A Share is part I of N, counted from 1. The zero value means all jobs.
type Share struct{ I, N int }

// sharesMax is the maximum of N, which is the limit of an Indexed Job.
const sharesMax = 100_000

// ParseShare parses I/N.
func ParseShare(s string) (Share, error) {
	first, second, _ := strings.Cut(s, "/")
	i, errI := strconv.Atoi(first)
	n, errN := strconv.Atoi(second)
	if errI != nil || errN != nil || i < 1 || n < i || n > sharesMax {
		return Share{}, fmt.Errorf("%q is no I/N with 1 ≤ I ≤ N ≤ %d", s, sharesMax)
	}
	return Share{i, n}, nil
}

func (s Share) String() string { return fmt.Sprintf("%d/%d", s.I, s.N) }

// Jobs contains the runs of comparisons, and the bounds of their cases and seeds, which are jobs of
// the policy [eval.OracleName], with their keys.
type Jobs struct {
	keys  map[at]string
	order []keyed
}

// An at identifies a job by names, independently of its inputs.
type at struct {
	truth, scenario string
	window          int
	policy          string
	seed            uint64
}

func atOf(j eval.Job) at {
	return at{j.Bound.Truth.String(), j.Scenario, j.Window, j.Policy, j.Seed}
}

type keyed struct {
	at
	key string
}

// JobsOf returns the jobs of comparisons.
func JobsOf(of []eval.Config, keys *Keys) (*Jobs, error) {
	js := &Jobs{keys: map[at]string{}}
	for i := range of {
		c := of[i].Complete()
		c.Policies = append(c.Policies, eval.OracleName)
		for j := range c.Jobs {
			key, err := keys.Of(j)
			if err != nil {
				return nil, err
			}
			x := keyed{atOf(j), key}
			js.keys[x.at] = key
			js.order = append(js.order, x)
		}
	}
	js.deal()
	return js, nil
}

// deal sorts jobs into the order in which they are dealt to shares: first by policy and scenario,
// whose jobs have similar costs, then by key, so that all shares have similar costs.
func (js *Jobs) deal() {
	slices.SortFunc(js.order, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.policy, b.policy), cmp.Compare(a.scenario, b.scenario), cmp.Compare(a.key, b.key))
	})
}

// Of returns the number of jobs of share s, and a function that reports whether a job belongs to
// it, nil for all jobs.
func (js *Jobs) Of(s Share) (n int, mine func(eval.Job) bool) {
	if s.N == 0 {
		return len(js.order), nil
	}
	own := map[at]bool{}
	for i := s.I - 1; i < len(js.order); i += s.N {
		own[js.order[i].at] = true
	}
	return len(own), func(j eval.Job) bool { return own[atOf(j)] }
}

// Key returns the key of a job, "" if j is not one of the jobs.
func (js *Jobs) Key(j eval.Job) string { return js.keys[atOf(j)] }

// A partError names a rejected part and the reason.
type partError struct{ name, why string }

func (e *partError) Error() string { return e.name + ": " + e.why }

func refused(name, format string, args ...any) error {
	return &partError{name, fmt.Sprintf(format, args...)}
}
