package record

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// Last returns the last step. It reads only the segments that it needs.
func (r *Recording) Last() (*Step, error) {
	var last *Step
	for s, err := range r.from(r.segments[len(r.segments)-1]) {
		if err != nil {
			return nil, err
		}
		last = s
	}
	if last == nil {
		return nil, fmt.Errorf("%s: no segment in it starts with a full snapshot: %w", r.dir, ErrNoRecording)
	}
	return last, nil
}

// Step returns the step with the given number. The error is [ErrNoStep] if there is no such step.
func (r *Recording) Step(number int64) (*Step, error) {
	last := int64(0)
	for s, err := range r.Steps() {
		if err != nil {
			return nil, err
		}
		if s.Number == number {
			return s, nil
		}
		last = s.Number
	}
	return nil, fmt.Errorf("%w: the recording %s has no step %d; its last is %d", ErrNoStep, r.dir, number, last)
}

// At returns the last step at or before t. The error is [ErrNoStep] if there is no such step.
func (r *Recording) At(t policy.Time) (*Step, error) {
	var found *Step
	for s, err := range r.Steps() {
		if err != nil {
			return nil, err
		}
		if s.Snapshot.Now > t {
			if found == nil {
				return nil, fmt.Errorf("%w: the recording %s starts at %v, after %v", ErrNoStep, r.dir, s.Snapshot.Now, t)
			}
			break
		}
		found = s
	}
	if found == nil {
		return nil, fmt.Errorf("%w: the recording %s has no step", ErrNoStep, r.dir)
	}
	return found, nil
}

// Newest returns the number of the last complete segment. A reader that follows a recording reads
// it again when this number has changed.
func (r *Recording) Newest() int { return r.segments[len(r.segments)-1] }

// Since returns the part of the recording that starts with the last full segment at or before t:
// earlier segments are not read. It returns the whole recording if that starts after t.
func (r *Recording) Since(t policy.Time) (*Recording, error) {
	part := *r
	for i := range slices.Backward(r.segments) {
		first, err := firstInstant(r.dir, r.segments[i])
		if err != nil {
			return nil, err
		}
		if first <= t {
			part.segments = r.segments[r.whole(r.segments[i]):]
			break
		}
	}
	return &part, nil
}

// firstInstant returns the time of the first step of a segment. It reads only the table of steps.
func firstInstant(dir string, number int) (policy.Time, error) {
	s, err := open(segmentDir(dir, number), tableSteps, func(r *stepRow) int64 { return r.Step })
	if err != nil {
		if removed(dir, number) {
			return 0, nil // removed by retention after the folder was listed; the remaining segments are later
		}
		return 0, missing(err)
	}
	g := &segmentReader{steps: s}
	row, _, err := g.nextStep()
	return policy.Time(row.Now), errors.Join(err, s.close())
}
