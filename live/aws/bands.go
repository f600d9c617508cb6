package aws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// An advice is what the Spot Instance Advisor publishes: for each region,
// operating system and type the band of interruptions in the past month, from
// 0 (below 5 %) to 4 (above 20 %).
type advice struct {
	Regions map[string]map[string]map[string]struct {
		Band *int `json:"r"`
	} `json:"spot_advisor"`
}

// bandMax is the highest band.
const bandMax = 4

// fetchBands reads the interruption bands of all regions.
func (r *run) fetchBands(ctx context.Context) error {
	all, err := r.advice(ctx)
	if err != nil {
		return fault(ctx, actionAdvisor, r.config.AdvisorURL, err)
	}
	e := &bandsEntry{Regions: map[string]map[string]int8{}}
	for _, region := range r.plan.Regions {
		bands := map[string]int8{}
		for kind, v := range all.Regions[region][advisorProduct(r.plan.Product)] {
			if !takes(r.plan.Types, r.plan.Families, kind) || v.Band == nil {
				continue
			}
			if *v.Band < 0 || *v.Band > bandMax {
				return fault(ctx, actionAdvisor, r.config.AdvisorURL, fmt.Errorf("band %d of %s in %s is none of 0…%d", *v.Band, kind, region, bandMax))
			}
			bands[kind] = int8(*v.Band)
		}
		if len(bands) == 0 {
			r.config.warn("the Spot Instance Advisor names no type of %s", region)
		}
		e.Regions[region] = bands
	}
	return r.keep(entry{Bands: e})
}

// advice reads the published file, with the pacing and the retries of all
// other requests.
func (r *run) advice(ctx context.Context) (*advice, error) {
	limits := r.session.pacer(&r.config.AdvisorURL, "the Spot Instance Advisor", besideAttempts)
	for attempt := 1; ; attempt++ {
		release, err := limits.GetAttemptToken(ctx)
		if err != nil {
			return nil, err
		}
		a, err := r.readAdvice(ctx)
		if releaseErr := release(err); releaseErr != nil || err == nil || attempt == limits.attempts || !mayRetry(limits, err) {
			return a, errors.Join(err, releaseErr)
		}
		delay, err := limits.RetryDelay(attempt, err)
		if err == nil {
			err = sleep(ctx, delay)
		}
		if err != nil {
			return nil, err
		}
	}
}

// A statusError is an answer other than 200.
type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("it answers %d %s", int(s), http.StatusText(int(s)))
}

func mayRetry(limits *pacer, err error) bool {
	var status statusError
	if errors.As(err, &status) {
		return status >= 500 || status == http.StatusTooManyRequests
	}
	return limits.IsErrorRetryable(err)
}

func (r *run) readAdvice(ctx context.Context) (*advice, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.config.AdvisorURL, nil)
	if err != nil {
		return nil, err
	}
	answer, err := r.session.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, statusError(answer.StatusCode)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var a advice
	if !json.Valid(body) {
		return nil, &cutShortError{what: fmt.Sprintf("%d bytes are no whole JSON", len(body))}
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if len(a.Regions) == 0 {
		return nil, errors.New("it has no part \"spot_advisor\"")
	}
	return &a, nil
}
