package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/queue/fake"
	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
	"github.com/spotter-dev/spotter/test/testenv"
)

// actionsOf are the actions of IAM that each request needs, by the method and whether
// it is of an object for S3, and by the name of the action for SQS, whose batches need
// the right to do one.
var actionsOf = map[string]string{
	"GET": "s3:ListBucket", "HEAD object": "s3:GetObject", "GET object": "s3:GetObject", "PUT object": "s3:PutObject",
	"ReceiveMessage": "sqs:ReceiveMessage", "DeleteMessage": "sqs:DeleteMessage", "DeleteMessageBatch": "sqs:DeleteMessage",
}

// TestAWSRightsAreExact has a controller in shadow mode record to a bucket and read a queue, and
// a second controller continue with both. Together they use exactly the documented permissions,
// and in the bucket access nothing outside their prefix.
func TestAWSRightsAreExact(t *testing.T) {
	s := newStage(t, shadowRules)
	messages := fake.New()
	messages.Send(fmt.Sprintf(`{"detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","time":%q,"detail":{"instance-id":"i-0123456789abcdef0","instance-action":"terminate"}}`,
		time.Now().UTC().Format(time.RFC3339))) // one without a time is left to others for a minute
	sqs := httptest.NewServer(messages)
	defer sqs.Close()
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ENDPOINT_URL_SQS", sqs.URL)
	dir := t.TempDir()
	bucket, settings := newRecords(t, "DIR")
	settings = append(settings, "notices: {queueURL: '"+queueOfTest+"'}")
	for i := range 2 { // the second meets what the first has left in the bucket
		dir := filepath.Join(dir, strconv.Itoa(i))
		r := s.start(t, strings.ReplaceAll(strings.Join(settings, "\n"), "DIR", dir))
		testenv.Eventually(t, "three decisions are found", func() error {
			if n := decisionsIn(t, dir); n < 3 {
				return fmt.Errorf("%d are", n)
			}
			if messages.Len() > 0 {
				return errors.New("a message lies in the queue")
			}
			return nil
		})
		stop(t, r)
	}
	setup := rights.Setup{Parts: []rights.Part{rights.Bucket, rights.Queue}, Queue: queueOfTest,
		Bucket: "s3://records/a", Regions: []string{"us-east-1"}}
	code, text, errs := call(t, "run", "--print-iam-policy", "--config",
		configured(t, "notices: {queueURL: '"+queueOfTest+"'}", "recording: {dir: r, bucket: {url: s3://records/a, region: us-east-1}}"))
	if code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var printed rights.Policy
	if err := json.Unmarshal([]byte(text), &printed); err != nil {
		t.Fatal(err)
	}
	allowed(t, printed, bucket.Requests(), messages.Calls())
	want := slices.DeleteFunc(rightstest.Actions(setup), func(a string) bool { return strings.HasPrefix(a, "kms:") }) // by AWS itself, for us
	if got := slices.Sorted(maps.Keys(asksOf(t, bucket.Requests(), messages.Calls()))); !slices.Equal(got, want) {
		t.Errorf("asked for %v, documented are %v", got, want)
	}
}

const queueOfTest = "https://sqs.us-east-1.amazonaws.com/123456789012/spotter"

// allowed fails the test unless a policy allows all requests, and none of them on another
// queue, in another bucket or outside the prefix.
func allowed(t *testing.T, p rights.Policy, s3 []string, sqs []fake.Call) {
	t.Helper()
	check := func(action, resource, prefix string, want bool) {
		if rightstest.Allows(p, rightstest.Request{Action: action, Resource: resource, Keys: map[string][]string{"s3:prefix": {prefix}}}) != want {
			t.Errorf("%s on %s, prefix %q: allowed is not %t", action, resource, prefix, want)
		}
	}
	for _, r := range s3 {
		method, key, _ := strings.Cut(r, " ")
		if prefix, list := strings.CutPrefix(key, "?"); list {
			check("s3:ListBucket", "arn:aws:s3:::records", prefix, true)
			check("s3:ListBucket", "arn:aws:s3:::records", "b/"+prefix, false)
			check("s3:ListBucket", "arn:aws:s3:::others", prefix, false)
			continue
		}
		check(actionsOf[method+" object"], "arn:aws:s3:::records/"+key, "", true)
		check(actionsOf[method+" object"], "arn:aws:s3:::others/"+key, "", false)
		check(actionsOf[method+" object"], "arn:aws:s3:::records/b/"+key, "", false)
	}
	for _, c := range sqs {
		arn := strings.Replace(c.Queue, "https://sqs.us-east-1.amazonaws.com/123456789012/", "arn:aws:sqs:us-east-1:123456789012:", 1)
		check(actionsOf[c.Action], arn, "", true)
		check(actionsOf[c.Action], arn+"-2", "", false)
	}
}

// asksOf returns the actions of IAM that requests need.
func asksOf(t *testing.T, s3 []string, sqs []fake.Call) map[string]bool {
	t.Helper()
	asked := map[string]bool{}
	ask := func(what, request string) {
		if actionsOf[what] == "" {
			t.Errorf("nobody knows what right %q needs", request)
			return
		}
		asked[actionsOf[what]] = true
	}
	for _, r := range s3 {
		method, key, _ := strings.Cut(r, " ")
		if strings.HasPrefix(key, "?") {
			ask(method, r)
			continue
		}
		if !strings.HasPrefix(key, "a/") {
			t.Errorf("%s: it lies beside the prefix", r)
		}
		ask(method+" object", r)
	}
	for _, c := range sqs {
		ask(c.Action, c.Action)
	}
	return asked
}
