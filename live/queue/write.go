package queue

import (
	"context"
	"fmt"
	"strconv"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// This file contains the only write of this package: the deletion of messages from Spotter's queue.

// forget deletes the processed messages. Messages that AWS fails to delete are retried with the
// next call.
func (q *Queue) forget(ctx context.Context) error {
	for len(q.done) > 0 {
		n := min(batchMax, len(q.done))
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &q.config.URL}
		for i := range q.done[:n] {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: sdk.String(strconv.Itoa(i)),
				ReceiptHandle: &q.done[i]})
		}
		deleted, err := q.remove(ctx, in)
		if err != nil {
			return q.failed("deleting messages", err)
		}
		var again []string
		for _, x := range deleted.Failed {
			// If the receipt is rejected permanently, the message is received again.
			if i, err := strconv.Atoi(sdk.ToString(x.Id)); err == nil && i >= 0 && i < n && !x.SenderFault {
				again = append(again, q.done[i])
			}
		}
		q.count(func(c *Counts) { c.Deleted += n - len(deleted.Failed) })
		q.done = append(q.done[n:], again...)
		if len(again) == n {
			return q.failed("deleting messages", fmt.Errorf("none of %d was deleted: %s", n,
				sdk.ToString(deleted.Failed[0].Message)))
		}
	}
	return nil
}

func (q *Queue) remove(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
	ctx, stop := context.WithTimeout(ctx, q.config.Timeout)
	defer stop()
	return q.sqs.DeleteMessageBatch(ctx, in)
}
