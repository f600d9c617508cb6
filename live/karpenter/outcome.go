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

// A launchEnd is the time at which a launch failed, and the markets that it had requested.
type launchEnd struct {
	at      policy.Time
	markets []string
}

// launchEndsKept is how long the end of a launch is remembered. A repeated request for the same
// launch gets the remembered result and is not executed again.
const launchEndsKept = time.Hour

// An outcomeTable remembers Spotter's failed launches and reports refusals. After a restart, a
// failed launch may be tried once more.
type outcomeTable struct {
	sink   backend.Sink
	claims *claimConverter

	mu   sync.Mutex
	ends map[string]launchEnd // by token
}

// end returns how the launch of a token ended, and whether it failed.
func (o *outcomeTable) end(token string) (launchEnd, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end, ended := o.ends[token]
	return end, ended
}

// forget removes the record that the launch of a token failed.
func (o *outcomeTable) forget(token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.ends, token)
}

// trim removes records that are older than launchEndsKept.
func (o *outcomeTable) trim(now policy.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.ends, func(_ string, end launchEnd) bool { return now.Sub(end.at) > launchEndsKept })
}

// refusedMax is the maximum number of markets that a claim may request for its refusal to count
// against each of them: Karpenter's own claims request nearly all markets.
const refusedMax = 24

// ended records the failure of a claim if it belongs to one of Spotter's launches, and returns the
// markets that it requested.
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

// refused reports that no market that a claim requested had capacity.
func (o *outcomeTable) refused(pool string, markets []string, at policy.Time) {
	if len(markets) == 0 || len(markets) > refusedMax {
		markets = []string{""}
	}
	for _, m := range markets {
		o.sink.Meet(backend.Event{Kind: backend.MetRefusal, Pool: pool, Market: m, At: at})
	}
	o.sink.Wake(backend.WakeRefused)
}
