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

// covered returns the end of the span that need not be asked for again: the last
// recording asked for the same as p, began no later, and its days still lie in the
// folder. It is 0 where all of p is to be asked for.
func (r *Recorder) covered(p *plan) (policy.Time, error) {
	var last plan
	text, err := os.ReadFile(r.coveredPath())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	whole := json.Unmarshal(text, &last) == nil // a file that is damaged costs requests and nothing else
	if !whole || !last.like(p) || last.From > p.From {
		return 0, nil
	}
	for _, region := range p.Regions {
		all, err := dates(r.config.Dir, region)
		if err != nil {
			return 0, err
		}
		// A region whose first or last days somebody removed is asked for anew.
		if len(all) == 0 || all[0] > dayOf(last.From) || all[len(all)-1] < dayOf(last.Until-1) {
			return 0, nil
		}
	}
	return last.Until, nil
}

// cover writes down what the recording of p, which is complete, covers together
// with the ones before that it goes on from.
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
	fresh := r.coveredPath() + ".new" // which sweep removes
	if err := os.WriteFile(fresh, text, 0o644); err != nil {
		return fmt.Errorf("writing the list of recorded spans: %w", err)
	}
	return moveFile(fresh, r.coveredPath())
}
