package aws

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spotter-dev/spotter/policy"
)

func (r *Recorder) coveredPath() string { return filepath.Join(r.state, "covered.json") }

// covered returns the end of the span of p that is already recorded: the last recording selected
// the same data as p, started no later, and its files are still in the folder. It returns 0 if all
// of p must be requested.
func (r *Recorder) covered(p *plan) (policy.Time, error) {
	var last plan
	text, err := os.ReadFile(r.coveredPath())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	whole := json.Unmarshal(text, &last) == nil // a damaged file only costs requests
	if !whole || !last.like(p) || last.From > p.From {
		return 0, nil
	}
	for _, region := range p.Regions {
		all, err := dates(r.config.Dir, region)
		if err != nil {
			return 0, err
		}
		// A region is requested again if the files of its first or last day were removed.
		if len(all) == 0 || all[0] > dayOf(last.From) || all[len(all)-1] < dayOf(last.Until-1) {
			return 0, nil
		}
	}
	return last.Until, nil
}

// cover records the span of p, whose recording is complete, extended by the recorded spans that it
// continues.
func (r *Recorder) cover(p *plan) error {
	now := *p
	now.Present = false
	var last plan
	if text, err := os.ReadFile(r.coveredPath()); err == nil && json.Unmarshal(text, &last) == nil &&
		last.like(p) && last.From <= p.Until && p.From <= last.Until {
		now.From, now.Until = min(last.From, p.From), max(last.Until, p.Until)
	}
	text, err := json.Marshal(&now)
	if err != nil {
		return err
	}
	fresh := r.coveredPath() + ".new" // sweep removes it after a crash
	if err := os.WriteFile(fresh, text, 0o644); err != nil {
		return fmt.Errorf("writing the list of recorded spans: %w", err)
	}
	return moveFile(fresh, r.coveredPath())
}
