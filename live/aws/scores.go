package aws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	"github.com/spotter-dev/spotter/policy"
)

// scoreMax is the highest placement score.
const scoreMax = 10

// quotaSpan is the period over which AWS counts new configurations (AWS documentation, "Spot
// placement score", limitations).
const quotaSpan = 24 * time.Hour

// A scoreQuota records the configurations requested within quotaSpan, with the time of their first
// request. They may be requested again; a new configuration counts against the quota.
type scoreQuota struct {
	path  string
	First map[string]policy.Time `json:"first_asked"`
}

func readQuota(path string, now policy.Time) (*scoreQuota, error) {
	q := &scoreQuota{path: path, First: map[string]policy.Time{}}
	if path == "" {
		return q, nil // kept in memory only
	}
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return q, nil
	}
	if err == nil {
		err = json.Unmarshal(body, q)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the count of requested placement scores, %s: %w", path, err)
	}
	q.forget(now)
	return q, nil
}

// forget deletes the configurations that no longer count.
func (q *scoreQuota) forget(now policy.Time) {
	for key, at := range q.First {
		if now.Sub(at) >= quotaSpan {
			delete(q.First, key)
		}
	}
}

// use reports whether the quota allows a configuration. It records a new configuration on disk
// before the configuration is requested.
func (q *scoreQuota) use(key string, most int, now policy.Time) (bool, error) {
	if _, ok := q.First[key]; ok {
		return true, nil
	}
	if len(q.First) >= most {
		return false, nil
	}
	q.First[key] = now
	if q.path == "" {
		return true, nil
	}
	body, err := json.MarshalIndent(q, "", "  ")
	if err != nil {
		return false, err
	}
	return true, writeWhole(q.path, append(body, '\n'))
}

// fetchScores requests the placement scores of the selected types, one type in one region at a
// time. It requests no scores if no types are selected, since a region has many more types than the
// quota.
func (r *run) fetchScores(ctx context.Context) error {
	if r.over {
		return nil
	}
	if len(r.plan.Types)+len(r.plan.Families) == 0 {
		r.config.warn("placement scores are requested only for selected types (their quota is about %d a day): select types or families", r.config.ScoresMax)
		return nil
	}
	quota, err := readQuota(filepath.Join(r.state, "scores.json"), r.plan.Until)
	if err != nil {
		return err
	}
	var skipped []string
	for _, region := range r.plan.Regions {
		for _, kind := range r.scored(region) {
			if _, known := r.scores[scoreKey{region, kind}]; known || r.over {
				continue
			}
			ok, err := quota.use(fmt.Sprintf("%s %s ×%d", region, kind, r.config.ScoreCapacity), r.config.ScoresMax,
				r.plan.Until)
			if err != nil {
				return err
			}
			if !ok {
				skipped = append(skipped, kind+" in "+region)
				continue
			}
			if err := r.fetchScore(ctx, region, kind); err != nil {
				return err
			}
		}
	}
	if len(skipped) > 0 {
		r.config.warn("the quota of %d configurations a day left %d without placement scores, the first: %s",
			r.config.ScoresMax, len(skipped), strings.Join(skipped[:min(3, len(skipped))], ", "))
	}
	if r.over {
		r.config.warn("AWS accepts no new configuration of placement scores for now; those not requested yet have none")
	}
	return nil
}

// scored returns the types of a region in the order of the requests: first those selected by name,
// then those of families.
func (r *run) scored(region string) []string {
	var named, others []string
	for key := range r.seen {
		if kind, ok := strings.CutPrefix(key, region+" "); ok && slices.Contains(r.plan.Types, kind) {
			named = append(named, kind)
		} else if ok {
			others = append(others, kind)
		}
	}
	slices.Sort(named)
	slices.Sort(others)
	return append(named, others...)
}

// fetchScore requests the scores of one type in the zones of one region.
func (r *run) fetchScore(ctx context.Context, region, kind string) error {
	scores, over, err := r.session.score(ctx, region, kind, r.config.ScoreCapacity)
	switch {
	case err != nil:
		return err
	case over:
		return r.keep(entry{Scores: &scoresEntry{Over: true}})
	}
	return r.keep(entry{Scores: &scoresEntry{Region: region, Type: kind, Scores: scores}})
}

// score returns the scores of one type in the zones of one region, by zone ID, for a number of
// nodes. over reports whether AWS accepts no new configuration today.
func (s *session) score(ctx context.Context, region, kind string, capacity int) (scores map[string]int8, over bool,
	err error) {
	in := &ec2.GetSpotPlacementScoresInput{
		InstanceTypes: []string{kind}, RegionNames: []string{region},
		SingleAvailabilityZone: sdk.Bool(true), TargetCapacity: sdk.Int32(int32(capacity)),
	}
	scores = map[string]int8{}
	for restarts := 0; ; {
		answer, err := s.optional[region].GetSpotPlacementScores(ctx, in)
		if err != nil && in.NextToken != nil && tokenRefused(err) && restarts < restartsMax {
			in.NextToken, restarts = nil, restarts+1
			continue
		}
		if quotaOver(err) {
			return nil, true, nil
		}
		if err != nil {
			return nil, false, fault(ctx, actionScores, region, err)
		}
		for _, x := range answer.SpotPlacementScores {
			if x.AvailabilityZoneId == nil || x.Score == nil || sdk.ToString(x.Region) != region {
				continue
			}
			if *x.Score < 1 || *x.Score > scoreMax {
				return nil, false, fault(ctx, actionScores, region, fmt.Errorf("score %d of %s is not in 1…%d", *x.Score, kind,
					scoreMax))
			}
			scores[*x.AvailabilityZoneId] = int8(*x.Score)
		}
		if in.NextToken = answer.NextToken; sdk.ToString(in.NextToken) == "" {
			return scores, false, nil
		}
	}
}

// quotaOver reports whether err means that AWS accepts no new configuration today.
func quotaOver(err error) bool {
	var said smithy.APIError
	return errors.As(err, &said) && said.ErrorCode() == "MaxConfigLimitExceeded"
}
