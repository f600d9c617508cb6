package aws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// An advice is the data published by the Spot Instance Advisor: the interruption band of the past
// month for each region, operating system and type, from 0 (below 5%) to 4 (above 20%).
type advice struct {
	Regions map[string]map[string]map[string]struct {
		Band *int `json:"r"`
	} `json:"spot_advisor"`
}

// bandMax is the highest band.
const bandMax = 4

// fetchBands reads the interruption bands of all regions.
func (r *run) fetchBands(ctx context.Context) error {
	bands, err := r.session.bands(ctx, r.config.AdvisorURL, r.plan)
	if err != nil {
		return err
	}
	for _, region := range r.plan.Regions {
		if len(bands[region]) == 0 {
			r.config.warn("the Spot Instance Advisor lists no instance type of %s", region)
		}
	}
	return r.keep(entry{Bands: &bandsEntry{Regions: bands}})
}

// bands returns the interruption bands of the regions and types of p.
func (s *session) bands(ctx context.Context, url string, p *plan) (map[string]map[string]int8, error) {
	all, err := s.advice(ctx, url)
	if err != nil {
		return nil, fault(ctx, actionAdvisor, url, err)
	}
	regions := map[string]map[string]int8{}
	for _, region := range p.Regions {
		bands := map[string]int8{}
		for kind, v := range all.Regions[region][advisorProduct(p.Product)] {
			if !takes(p.Types, p.Families, kind) || v.Band == nil {
				continue
			}
			if *v.Band < 0 || *v.Band > bandMax {
				return nil, fault(ctx, actionAdvisor, url, fmt.Errorf("band %d of %s in %s is not in 0…%d", *v.Band, kind, region,
					bandMax))
			}
			bands[kind] = int8(*v.Band)
		}
		regions[region] = bands
	}
	return regions, nil
}

// advice reads the published file, with the same pacing and retries as other requests.
func (s *session) advice(ctx context.Context, url string) (*advice, error) {
	limits := s.pacer(&url, "the Spot Instance Advisor", optionalAttempts)
	for attempt := 1; ; attempt++ {
		release, err := limits.GetAttemptToken(ctx)
		if err != nil {
			return nil, err
		}
		a, err := s.readAdvice(ctx, url)
		if releaseErr := release(err); releaseErr != nil || err == nil || attempt == limits.attempts ||
			!mayRetry(limits, err) {
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

// A statusError is the status code of a response other than 200.
type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("it answered %d %s", int(s), http.StatusText(int(s)))
}

func mayRetry(limits *pacer, err error) bool {
	var status statusError
	if errors.As(err, &status) {
		return status >= 500 || status == http.StatusTooManyRequests
	}
	return limits.IsErrorRetryable(err)
}

func (s *session) readAdvice(ctx context.Context, url string) (*advice, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.http.Do(request)
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
		return nil, &cutShortError{what: fmt.Sprintf("%d bytes are not complete JSON", len(body))}
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if len(a.Regions) == 0 {
		return nil, errors.New("it has no part \"spot_advisor\"")
	}
	return &a, nil
}
