package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/rights"
)

// The flag prints the policy of the mode and of what is used, reaches no cluster, and
// refuses what cannot be scoped.
func TestPrintIAMPolicy(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	config := func(settings ...string) string { return "--config " + configured(t, settings...) }
	for _, c := range []struct {
		args string
		has  string // an action
		not  string
		fail string
	}{
		{args: "--region us-east-1", has: "ec2:DescribeSpotPriceHistory", not: "autoscaling:DescribeAutoScalingGroups"},
		{args: "--region us-east-1 --trace prices " + config("notices: {queueURL: '"+queueOfTest+"'}"),
			has: "sqs:ReceiveMessage", not: "ec2:DescribeSpotPriceHistory"},
		{args: "--region us-east-1 --backends asg --cluster-name prod", has: "autoscaling:DescribeAutoScalingGroups",
			not: "autoscaling:SetDesiredCapacity"},
		{args: "--region us-east-1 --backends asg --cluster-name prod --mode active", has: "autoscaling:SetDesiredCapacity",
			not: "sqs:ReceiveMessage"},
		{args: config("recording: {dir: /nonexistent, bucket: {url: s3://b/p, region: us-east-1}}"), has: "s3:PutObject"},
		{args: "--region us-east-1 --backends asg", fail: "--cluster-name"},
		{args: "--region us-east-1 --backends asg --cluster-name *", fail: "--cluster-name"},
		{args: config("notices: {queueURL: https://sqs.us-east-1.amazonaws.com/spotter}"), fail: "notices.queueURL"},
		{args: "", fail: "nothing of AWS"},
		{args: "--mode both --region us-east-1", fail: "--mode"},
	} {
		code, out, errs := call(t, append([]string{"run", "--print-iam-policy"}, strings.Fields(c.args)...)...)
		if c.fail != "" {
			if code != cli.ExitInvalid || !strings.Contains(errs, c.fail) || out != "" {
				t.Errorf("%s: exit %d, %q, %s", c.args, code, out, errs)
			}
			continue
		}
		var p rights.Policy
		if err := json.Unmarshal([]byte(out), &p); err != nil || code != 0 || errs != "" {
			t.Errorf("%s: exit %d, %v, %s", c.args, code, err, errs)
		}
		if !strings.Contains(out, `"`+c.has+`"`) || c.not != "" && strings.Contains(out, `"`+c.not+`"`) {
			t.Errorf("%s: want %s and not %s in\n%s", c.args, c.has, c.not, out)
		}
	}
}
