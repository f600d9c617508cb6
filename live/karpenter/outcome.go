package karpenter

import (
	"maps"
	"strings"
	"sync"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A launchEnd is the reason and time of the end of a failed launch.
type launchEnd struct {
	at      policy.Time
	markets []string
}

// launchEndsKept is how long the end of a launch is remembered, so that a repeated request of the
// same launch is answered and not carried out again.
const launchEndsKept = time.Hour

// An outcomeTable remembers Spotter's failed launches, and reports refusals. After a restart such a
// launch is tried once more.
type outcomeTable struct {
	sink   backend.Sink
	claims *claimConverter

	mu   sync.Mutex
	ends map[string]launchEnd // by token
}

// end returns how the launch of a token ended, and whether it came to nothing.
func (o *outcomeTable) end(token string) (launchEnd, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end, ended := o.ends[token]
	return end, ended
}

// forget takes back that the launch of a token came to nothing.
func (o *outcomeTable) forget(token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.ends, token)
}

// trim forgets what is older than is remembered.
func (o *outcomeTable) trim(now policy.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.ends, func(_ string, end launchEnd) bool { return now.Sub(end.at) > launchEndsKept })
}

// refusedMax is the most markets that a claim may have requested if its refusal should count
// against each: Karpenter's own claims request nearly all.
const refusedMax = 24

// ended notes that a claim failed, if it is of one of Spotter's launches, and returns the markets
// that it requested.
func (o *outcomeTable) ended(c *karpv1.NodeClaim, at policy.Time) (markets []string) {
	if markets = strings.Split(c.Annotations[MarketsAnnotation], ","); markets[0] == "" {
		markets = o.claims.asked(c)
	}
	if token := c.Annotations[TokenAnnotation]; token != "" {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.ends[token] = launchEnd{at: at, markets: markets}
	}
	return markets
}

// refused reports that none of the markets that a claim requested had a machine.
func (o *outcomeTable) refused(pool string, markets []string, at policy.Time) {
	if len(markets) == 0 || len(markets) > refusedMax {
		markets = []string{""}
	}
	for _, m := range markets {
		o.sink.Meet(backend.Event{Kind: backend.MetRefusal, Pool: pool, Market: m, At: at})
	}
	o.sink.Wake(backend.WakeRefused)
}
