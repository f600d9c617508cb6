package run

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/queue"
)

// The condition of the queue tells a rival from a queue that cannot be read.
func TestRule09Condition(t *testing.T) {
	for _, c := range []struct {
		err    error
		status metav1.ConditionStatus
		reason string
	}{
		{nil, metav1.ConditionTrue, "Read"},
		{fmt.Errorf("%w: Deployment kube-system/karpenter reads it", queue.ErrRival), metav1.ConditionFalse, "Rival"},
		{errors.New("receiving messages: AccessDenied"), metav1.ConditionFalse, "QueueFailed"},
	} {
		got := noticesRead(c.err)
		if len(got) != 1 || got[0].Type != conditionNotices || got[0].Status != c.status || got[0].Reason != c.reason ||
			c.err != nil && !strings.Contains(got[0].Message, c.err.Error()) {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}
