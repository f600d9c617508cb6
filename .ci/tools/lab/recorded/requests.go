package recorded

import "time"

// requestsStep is how often an inference service may change its replicas, as an
// autoscaler does that waits for five minutes before it takes one away.
const requestsStep = 5 * time.Minute

func readRequests(files []*input, o *Options) (*recording, error) {
	r := &recording{
		about:  "requests to a large language model, each with its time and the tokens read and written",
		repeat: true, scaled: true,
	}
	var counted []int64 // tokens of each step
	for _, in := range files {
		t, err := openTable(in, FormatRequests)
		if err != nil {
			return nil, err
		}
		for t.next() {
			at := t.instant("TIMESTAMP")
			tokens := t.integer("ContextTokens", tasksMost) + t.integer("GeneratedTokens", tasksMost)
			if t.err != nil {
				break
			}
			if r.origin.IsZero() {
				r.origin = at.Truncate(time.Second)
			}
			k := int(at.Sub(r.origin) / requestsStep) // a little out of order is the first step too
			if at.Before(r.origin.Add(-requestsStep)) || k > 10*366*24*12 {
				t.fail("TIMESTAMP", "%q is long before the first request, or ten years after it", t.text("TIMESTAMP"))
				break
			}
			for len(counted) <= k {
				counted = append(counted, 0)
			}
			counted[k] += tokens
			r.end = max(r.end, at.Sub(r.origin))
		}
		if t.err != nil {
			return nil, t.err
		}
	}
	if len(counted) == 0 {
		return r, nil
	}
	r.services = append(r.services, inference(counted, r.end, o))
	r.end = time.Duration(len(counted)) * requestsStep
	r.assume("One replica handles %g tokens a second, read or written alike (--tokens-per-second), on one GPU with 3 CPU and 12 GiB; it loads for 5 minutes before it serves.", o.TokensPerSecond)
	r.assume("Every 5 minutes there are as many replicas as the tokens of these 5 minutes need on average, and one at least.")
	r.assume("The service has the priority class high and no disruption budget.")
	return r, nil
}

// inference returns the service that handles the tokens counted in each step.
// The last step was recorded only up to end.
func inference(counted []int64, end time.Duration, o *Options) service {
	s := service{
		shape: shape{cpu: 3000, memory: 12 << 10, gpu: 1}, class: classHigh, name: "inference", startup: 5 * time.Minute,
	}
	for k, tokens := range counted {
		at := time.Duration(k) * requestsStep
		span := min(requestsStep, max(end-at, time.Minute))
		need := float64(tokens) / span.Seconds() / o.TokensPerSecond * o.Scale
		pods := max(1, int(need))
		if float64(pods) < need {
			pods++
		}
		if n := len(s.changes); n == 0 || s.changes[n-1].pods != pods {
			s.changes = append(s.changes, change{at, pods})
		}
	}
	return s
}
