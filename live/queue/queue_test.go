package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kube "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spotter-dev/spotter/live/backend"
	backendfake "github.com/spotter-dev/spotter/live/backend/fake"
	"github.com/spotter-dev/spotter/live/queue"
	"github.com/spotter-dev/spotter/live/queue/fake"
	"github.com/spotter-dev/spotter/policy"
)

func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// A sink keeps what is published.
type sink struct{ *backendfake.Sink }

// machines are the instances of the notices, in order.
func (s *sink) machines() []string {
	var all []string
	for _, n := range s.Noticed() {
		all = append(all, n.Machine)
	}
	return all
}

// A stand is a queue that runs on a fake server.
type stand struct {
	server *fake.Server
	sink   *sink
	queue  *queue.Queue
	url    string

	cluster client.Client
	config  queue.Config
}

// prepare makes a stand; change may alter the configuration. It does not run yet.
func prepare(t *testing.T, change func(*queue.Config), objects ...client.Object) *stand {
	t.Helper()
	s := &stand{server: fake.New(), sink: &sink{backendfake.NewSink()}}
	own := make([]client.Object, len(objects)) // others use them at the same time, and the client writes to them
	for i, o := range objects {
		own[i] = o.DeepCopyObject().(client.Object)
	}
	s.cluster = kube.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(own...).Build()
	web := httptest.NewServer(s.server)
	t.Cleanup(web.Close)
	s.url = web.URL + "/123456789012/spotter"
	c := queue.DefaultConfig()
	c.URL, c.Region, c.Endpoint = s.url, "eu-west-1", web.URL
	c.Wait, c.Visibility = time.Second, time.Hour // nothing comes again because a test is slow
	c.Timeout = time.Hour                         // no answer is given up because a test is slow
	c.ClaimWait = 0
	c.BackoffMin, c.BackoffMax = time.Millisecond, 20*time.Millisecond
	if change != nil {
		change(&c)
	}
	s.config = c
	s.reopen(t, s.cluster, s.cluster)
	return s
}

// reopen makes the queue of a stand again.
func (s *stand) reopen(t *testing.T, reader, nodes client.Reader) {
	t.Helper()
	api, err := queue.Dial(t.Context(), s.config)
	if err != nil {
		t.Fatal(err)
	}
	if s.queue, err = queue.New(s.config, api, reader, nodes, s.sink); err != nil {
		t.Fatal(err)
	}
}

// run runs the queue until the test ends.
func (s *stand) run(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.queue.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// emptied waits until the queue is empty. What was hidden for an answer that did not
// arrive is shown again.
func (s *stand) emptied(t *testing.T) {
	t.Helper()
	begin := time.Now()
	for shown := begin; s.server.Len() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(shown) > 10*time.Second {
			t.Logf("%d messages after %v: %+v, error %v", s.server.Len(), time.Since(begin), s.queue.Counts(), s.queue.Err())
			s.server.Show()
			shown = time.Now()
		}
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("%d messages are never deleted", s.server.Len())
		}
	}
}

// event writes an event of EventBridge as AWS documents it.
func event(id, detailType, source string, at time.Time, detail string) string {
	return fmt.Sprintf(`{"version":"0","id":%q,"detail-type":%q,"source":%q,"account":"123456789012","time":%q,
		"region":"eu-west-1","resources":["arn:aws:ec2:eu-west-1a:instance/i-1"],"detail":%s}`,
		id, detailType, source, at.UTC().Format(time.RFC3339), detail)
}

func interruption(id, instance string, at time.Time) string {
	return event(id, "EC2 Spot Instance Interruption Warning", "aws.ec2", at,
		fmt.Sprintf(`{"instance-id":%q,"instance-action":"terminate"}`, instance))
}

func recommendation(id, instance string, at time.Time) string {
	return event(id, "EC2 Instance Rebalance Recommendation", "aws.ec2", at, fmt.Sprintf(`{"instance-id":%q}`, instance))
}

func health(id string, start time.Time) string {
	return event(id, "AWS Health Event", "aws.health", time.Now(), fmt.Sprintf(
		`{"service":"EC2","eventTypeCode":"AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED","eventTypeCategory":"scheduledChange",
		"startTime":%q,"statusCode":"upcoming","affectedEntities":[{"entityValue":"i-health"}]}`, start.UTC().Format(time.RFC1123)))
}

// Each kind of message reports to the sink what it means, and none stays in the queue.
func TestRule09EveryKindOfMessage(t *testing.T) {
	s := prepare(t, nil)
	now := time.Now().Truncate(time.Second)
	s.server.Send(
		interruption("1", "i-warned", now),
		recommendation("2", "i-advised", now),
		event("3", "EC2 Instance State-change Notification", "aws.ec2", now, `{"instance-id":"i-gone","state":"shutting-down"}`),
		event("4", "EC2 Instance State-change Notification", "aws.ec2", now, `{"instance-id":"i-new","state":"running"}`),
		health("5", now.Add(20*time.Minute)),
		health("6", now.Add(240*time.Hour)),
		event("7", "EC2 Instance-terminate Lifecycle Action", "aws.autoscaling", now,
			`{"LifecycleTransition":"autoscaling:EC2_INSTANCE_TERMINATING"}`),
		`{"Event":"autoscaling:TEST_NOTIFICATION","AccountId":"1"}`,
		event("8", "EC2 Instance Launch Unsuccessful", "aws.autoscaling", now, `{}`),
		event("9", "EC2 Instance Launch Unsuccessful", "aws.autoscaling", now, `{}`),
	)
	s.run(t)
	eventually(t, "all are deleted", func() bool { return s.queue.Counts().Deleted == 10 })
	at := policy.TimeOf(now)
	got := s.sink.Noticed()
	want := []backend.Notice{
		{Machine: "i-warned", At: at, ReclaimAt: at.Add(2 * time.Minute), Source: "sqs"},
		{Machine: "i-advised", At: at, Source: "sqs"},
		{Machine: "i-health", ReclaimAt: at.Add(20 * time.Minute), Source: "sqs"},
		{Machine: "i-health", Source: "sqs"},
	}
	for i := range got {
		if got[i].Machine == "i-health" {
			got[i].At = 0 // the event's own time, not of interest
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("notices\n%+v, want\n%+v", got, want)
	}
	if got, want := s.sink.Woken(), []string{"state-change"}; !slices.Equal(got, want) {
		t.Errorf("wakes %v, want %v", got, want)
	}
	c := s.queue.Counts()
	c.Failures = 0
	if want := (queue.Counts{Received: 10, Interruptions: 1, Recommendations: 1, StateChanges: 2, ScheduledChanges: 2,
		Lifecycle: 2, Unknown: 2, Deleted: 10}); c != want {
		t.Errorf("counts %+v, want %+v", c, want)
	}
}

// A warning that is delivered twice, or sent twice, is reported once; the order of
// delivery loses none; deletions are batched.
func TestRule09DuplicatesAndOrder(t *testing.T) {
	s := prepare(t, nil)
	s.server.SetFaults(fake.Faults{Twice: true, Backwards: true})
	now := time.Now()
	var want []string
	for i := range 95 {
		name := fmt.Sprintf("i-%03d", i)
		s.server.Send(interruption("e"+name, name, now.Add(time.Duration(-i)*time.Second/2)))
		want = append(want, name)
	}
	s.server.Send(interruption("ei-000", "i-000", now), interruption("ei-001", "i-001", now))
	s.run(t)
	s.emptied(t)
	got := s.sink.machines()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d notices, want %d, each instance once: %v", len(got), len(want), got)
	}
	if n := s.queue.Counts().Repeated; n < 2 {
		t.Errorf("%d were counted as repeated, want the 2 that were sent again at least", n)
	}
	deletions := 0
	for _, c := range s.server.Calls() {
		if c.Action == "DeleteMessageBatch" {
			deletions++
		}
	}
	if deletions > 40 {
		t.Errorf("%d requests deleted 97 messages", deletions)
	}
}

// A warning of what has happened already is no notice: the node is gone, or it was a
// false alarm. A step looks at what is there.
func TestRule09LateMessages(t *testing.T) {
	s := prepare(t, nil)
	now := time.Now()
	s.server.Send(
		interruption("1", "i-late", now.Add(-3*time.Minute)),
		recommendation("2", "i-late", now.Add(-2*time.Hour)),
		recommendation("3", "i-good", now.Add(-10*time.Minute)),
		interruption("4", "i-ahead", now.Add(20*time.Second)), // the sender's clock is ahead
		health("5", now.Add(-time.Hour)),
	)
	s.run(t)
	s.emptied(t)
	if got, want := s.sink.machines(), []string{"i-good", "i-ahead"}; !slices.Equal(got, want) {
		t.Errorf("notices of %v, want %v", got, want)
	}
	if n := s.queue.Counts().Late; n != 3 {
		t.Errorf("%d were late, want 3", n)
	}
}

// A message that cannot be read comes again until it has been received often enough, and is then
// deleted; the messages behind it are read at once.
func TestRule09MalformedNeverBlocks(t *testing.T) {
	s := prepare(t, func(c *queue.Config) { c.ReceivesMax = 2 })
	bad := []string{
		"", "{", `"text"`, `[]`, `{"id":"x"}`, `{"detail-type":"EC2 Spot Instance Interruption Warning"}`,
		event("b1", "EC2 Spot Instance Interruption Warning", "aws.ec2", time.Now(), `{"instance-id":""}`),
		event("b2", "EC2 Spot Instance Interruption Warning", "aws.ec2", time.Now(), `[]`),
		strings.Replace(interruption("b3", "i-x", time.Now()), `"time":"`, `"time":"yesterday `, 1),
		event("b4", "AWS Health Event", "aws.health", time.Now(), `{"service":"EC2","eventTypeCategory":"scheduledChange","startTime":"soon"}`),
		"\x00\xff", strings.Repeat("[", 20_000),
	}
	s.server.Send(bad...)
	s.server.Send(interruption("1", "i-behind", time.Now()))
	s.run(t)
	eventually(t, "the warning behind is read", func() bool { return slices.Contains(s.sink.machines(), "i-behind") })
	eventually(t, "each was received once", func() bool { return s.queue.Counts().Malformed == len(bad) && s.server.Len() <= len(bad) })
	if n := s.server.Len(); n != len(bad) {
		t.Errorf("%d messages are left after one receive, want all %d that cannot be read", n, len(bad))
	}
	s.server.Show()
	s.emptied(t)
	if n := s.queue.Counts().Malformed; n < 2*len(bad) {
		t.Errorf("%d were counted as malformed, want each of %d twice", n, len(bad))
	}
	if got := s.sink.machines(); len(got) != 1 {
		t.Errorf("notices of %v", got)
	}
}

// Throttling, errors of the server, expired credentials and deletions that fail are
// waited out; nothing is lost and nothing reported twice.
func TestRule09ErrorsOfTheService(t *testing.T) {
	for name, f := range map[string]fake.Faults{
		"throttled": {Throttle: 12}, "internal": {Internal: 12}, "expired": {Expired: 5}, "undeleted": {Undeleted: 25},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			s.server.SetFaults(f)
			for i := range 12 {
				s.server.Send(interruption(fmt.Sprint(i), fmt.Sprintf("i-%02d", i), time.Now()))
			}
			s.run(t)
			s.emptied(t)
			got := s.sink.machines()
			slices.Sort(got)
			if n := len(slices.Compact(got)); n != 12 || len(s.sink.machines()) != 12 {
				t.Errorf("%d notices of %d instances, want one of each of 12", len(s.sink.machines()), n)
			}
			eventually(t, "all is well", func() bool { return s.queue.Err() == nil })
			if s.queue.Counts().Failures == 0 {
				t.Error("no failure was counted")
			}
		})
	}
}

// A queue that is not there, that never answers, or that may not be read, is an error to be shown and not
// the end; once it can be read it is.
func TestRule09QueueThatCannotBeRead(t *testing.T) {
	for name, f := range map[string]fake.Faults{"NonExistentQueue": {Missing: true}, "AccessDenied": {Denied: true},
		"silent": {Silent: true}} {
		s := prepare(t, func(c *queue.Config) {
			if f.Silent {
				c.Timeout = 50 * time.Millisecond
			}
		})
		s.server.SetFaults(f)
		s.server.Send(interruption("1", "i-1", time.Now()))
		s.run(t)
		eventually(t, "an error is shown", func() bool { return s.queue.Err() != nil })
		if err := s.queue.Err(); !strings.Contains(err.Error(), s.url) {
			t.Errorf("%s: %v does not name the queue", name, err)
		}
		s.server.SetFaults(fake.Faults{})
		eventually(t, "it is read", func() bool { return len(s.sink.Noticed()) > 0 })
	}
}

// The queue is received from and deleted from, and nothing else is done to it, in
// shadow mode or not.
func TestRule13OnlyOwnMessagesAreDeleted(t *testing.T) {
	s := prepare(t, nil)
	s.server.Send(interruption("1", "i-1", time.Now()), "what cannot be read")
	s.run(t)
	eventually(t, "the warning is deleted", func() bool { return s.server.Len() == 1 })
	for _, c := range s.server.Calls() {
		if c.Action != "ReceiveMessage" && c.Action != "DeleteMessageBatch" {
			t.Errorf("%s was asked for", c.Action)
		}
	}
}

// The configuration is checked at once, by field and value.
func TestConfigIsChecked(t *testing.T) {
	for want, change := range map[string]func(*queue.Config){
		`URL ""`:           func(c *queue.Config) { c.URL = "" },
		`URL "spotter"`:    func(c *queue.Config) { c.URL = "spotter" },
		"Wait 30s":         func(c *queue.Config) { c.Wait = 30 * time.Second },
		"Timeout 0s":       func(c *queue.Config) { c.Timeout = 0 },
		"Visibility 0s":    func(c *queue.Config) { c.Visibility = 0 },
		"ReceivesMax 0":    func(c *queue.Config) { c.ReceivesMax = 0 },
		"BackoffMax 1ms":   func(c *queue.Config) { c.BackoffMax = time.Millisecond },
		`Endpoint "x"`:     func(c *queue.Config) { c.Endpoint = "x" },
		"Clock and Log":    func(c *queue.Config) { c.Clock = nil },
		"ClaimWait 1h":     func(c *queue.Config) { c.ClaimWait = time.Hour },
		"CheckEvery 48h":   func(c *queue.Config) { c.CheckEvery = 48 * time.Hour },
		"InterruptionLate": func(c *queue.Config) { c.InterruptionLate = 0 },
	} {
		c := queue.DefaultConfig()
		c.URL = "https://sqs.eu-west-1.amazonaws.com/1/spotter"
		change(&c)
		_, err := queue.New(c, nil, nil, nil, nil)
		if !errors.Is(err, queue.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %s", err, want)
		}
	}
}
