package e2e

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/queue/fake"
)

// A queue is Spotter's own of notices, as EventBridge fills it.
type queue struct {
	sqs         *fake.Server
	server, url string
	sent        int
}

func openQueue(t *testing.T) *queue {
	q := &queue{sqs: fake.New()}
	web := httptest.NewServer(q.sqs)
	serve(t, web)
	q.server, q.url = web.URL, web.URL+"/123456789012/spotter"
	return q
}

// The details of EventBridge.
const (
	interruption   = "EC2 Spot Instance Interruption Warning"
	recommendation = "EC2 Instance Rebalance Recommendation"
)

func (q *queue) send(detail, machine string) {
	q.sent++
	q.sqs.Send(fmt.Sprintf(`{"version":"0","id":"%d","detail-type":%q,"source":"aws.ec2","account":"123456789012","time":%q,"region":%q,"resources":[],"detail":{"instance-id":%q,"instance-action":"terminate"}}`,
		q.sent, detail, time.Now().UTC().Format(time.RFC3339), region, machine))
}

// lead is how long before it takes a machine the provider says so.
const lead = 20 * time.Second

// reclaim announces that a node is taken, to all who receive notices, and returns when it is.
func (w *fixture) reclaim(t *testing.T, node string) time.Time {
	t.Helper()
	at := time.Now().Add(lead)
	w.spoil(time.Now(), at)
	if err := w.karpenter.Reclaim(node, at); err != nil {
		t.Fatal(err)
	}
	if !w.interrupts {
		w.queue.send(interruption, node)
	}
	return at
}

// recommend advises to leave a node.
func (w *fixture) recommend(t *testing.T, node string) {
	t.Helper()
	if err := w.karpenter.Recommend(node); err != nil {
		t.Fatal(err)
	}
	if !w.interrupts {
		w.queue.send(recommendation, node)
	}
}
