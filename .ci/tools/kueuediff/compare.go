package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A tally counts what was compared.
type tally struct {
	states, differ   int // states, and those with a cycle that differs
	cycles           int // up to the first that differs
	admits, preempts int
	last             string
}

// print reports the tally; it is an error if the share of equal states is below least.
func (t *tally) print(out io.Writer, least float64) error {
	equal := float64(t.states-t.differ) / float64(max(1, t.states))
	fmt.Fprintf(out, "%d states, %d cycles: %d workloads admitted, %d preempted\nequal: %d states, %.2f%%\n", t.states,
		t.cycles, t.admits, t.preempts, t.states-t.differ, 100*equal)
	switch {
	case t.admits == 0:
		return errors.New("nothing was admitted")
	case equal < least:
		return fmt.Errorf("%.2f%% of the states are equal, want %.0f%%", 100*equal, 100*least)
	}
	return nil
}

// play plays the steps of a state in both, up to the first difference. It writes what the workloads
// are after each step to out, if that is not nil.
func (t *tally) play(ctx context.Context, st *state, out io.Writer) error {
	real, err := newReal(ctx, st)
	if err != nil {
		return err
	}
	o, err := newOurs(st)
	if err != nil {
		return err
	}
	t.states++
	before := map[string]string{}
	for i, s := range st.Steps {
		if err := errors.Join(real.step(ctx, s, st), o.step(s)); err != nil {
			return fmt.Errorf("step %d, %s %s: %w", i, s.Do, s.On, err)
		}
		theirs, mine := real.report(), o.report()
		if out != nil {
			fmt.Fprintf(out, "step %d: %s %s\n", i, s.Do, s.On)
			if s.Do == "cycle" {
				fmt.Fprintf(out, "  decided here: %s\n", strings.Join(o.did, "; "))
			}
			for _, name := range slices.Sorted(maps.Keys(theirs)) {
				if theirs[name] != before[name] || mine[name] != theirs[name] {
					fmt.Fprintf(out, "  %s: %s; here %s%s\n", name, theirs[name], mine[name], real.message(name))
				}
			}
		}
		if s.Do == "cycle" {
			t.cycles++
			t.count(before, theirs)
		}
		if name := differ(theirs, mine); name != "" {
			t.differ++
			t.last = fmt.Sprintf("step %d, %s %s: %s: %s, here %s", i, s.Do, s.On, name, theirs[name], mine[name])
			return nil
		}
		before = theirs
	}
	return nil
}

func (t *tally) count(before, after map[string]string) {
	for name, is := range after {
		switch was := before[name]; {
		case was == is:
		case strings.HasPrefix(is, "admitted"):
			t.admits++
		case strings.HasPrefix(is, "evicted"):
			t.preempts++
		}
	}
}

// differ returns the first workload that both describe differently, or "".
func differ(a, b map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] != b[name] {
			return name
		}
	}
	if len(a) != len(b) {
		return "number of workloads"
	}
	return ""
}

func (r *realKueue) step(ctx context.Context, s step, st *state) error {
	switch s.Do {
	case "cycle":
		return r.cycle(ctx)
	case "submit":
		return r.submit(ctx, st.workload(s.On))
	case "finish":
		return r.finish(ctx, s.On)
	case "requeue":
		for _, name := range st.named(s) {
			if err := r.requeue(ctx, name); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("unknown step")
}

func (o *ours) step(s step) error {
	switch s.Do {
	case "cycle":
		o.cycle()
	case "submit":
		return o.submit(o.st.workload(s.On))
	case "finish":
		o.finish(s.On)
	case "requeue":
		for _, name := range o.st.named(s) {
			o.requeue(name)
		}
	}
	return nil
}

// named returns the workloads that a step concerns.
func (st *state) named(s step) []string {
	if s.On != "" {
		return []string{s.On}
	}
	var all []string
	for i := range st.Workloads {
		all = append(all, st.Workloads[i].Name)
	}
	return all
}
