package run

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/queue"
)

// notices starts reading Spotter's queue, if one is configured.
func (w *wiring) notices(ctx context.Context) error {
	if w.f.Notices.QueueURL == "" {
		return nil
	}
	cfg := queue.DefaultConfig()
	cfg.Clock = w.clock
	cfg.URL, cfg.Log = w.f.Notices.QueueURL, w.log
	if len(w.f.Prices.Regions) > 0 {
		cfg.Region = w.f.Prices.Regions[0]
	}
	sqs, err := queue.Dial(ctx, cfg)
	if err != nil {
		return cli.Invalid(w.f.fault("notices.queueURL", err), "give credentials as the AWS CLI takes them")
	}
	if w.groups != nil {
		cfg.DrainedBy = w.groups.Notice
	}
	q, err := queue.New(cfg, sqs, w.manager.GetAPIReader(), w.manager.GetClient(), w.observer)
	if err != nil {
		return cli.Invalid(w.f.fault("notices.queueURL", err),
			"give the URL of a queue, as https://sqs.us-east-1.amazonaws.com/123456789012/spotter")
	}
	if err := ctrlmetrics.Registry.Register(q); err != nil {
		return fmt.Errorf("metrics of the queue: %w", err)
	}
	w.parts.Judges = append(w.parts.Judges, judged(func(string) []metav1.Condition { return noticesRead(q.Err()) }))
	return w.manager.Add(q)
}

// conditionNotices reports whether every notice of the queue is read.
const conditionNotices = "NoticesRead"

func noticesRead(err error) []metav1.Condition {
	c := metav1.Condition{Type: conditionNotices, Status: metav1.ConditionTrue, Reason: "Read",
		Message: "the queue of notices is read"}
	switch {
	case errors.Is(err, queue.ErrRival):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Rival", err.Error()
	case err != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "QueueFailed", err.Error()
	}
	return []metav1.Condition{c}
}
