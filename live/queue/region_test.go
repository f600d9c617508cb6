package queue_test

import (
	"testing"

	"github.com/spotter-dev/spotter/live/queue"
)

// TestQueueOfAnotherRegion: a queue is asked in the region that its URL names, and else in the
// one configured.
func TestQueueOfAnotherRegion(t *testing.T) {
	for url, want := range map[string]string{
		"https://sqs.eu-west-1.amazonaws.com/111122223333/spotter":     "eu-west-1",
		"https://sqs.cn-north-1.amazonaws.com.cn/111122223333/spotter": "cn-north-1",
		"http://localhost:9324/000000000000/spotter":                   "us-east-1",
	} {
		cfg := queue.DefaultConfig()
		cfg.URL, cfg.Region = url, "us-east-1"
		c, err := queue.Dial(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Options().Region; got != want {
			t.Errorf("%s is asked in %s, want %s", url, got, want)
		}
	}
}
