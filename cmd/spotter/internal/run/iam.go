package run

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/rights"
)

// clusterNames matches valid names of EKS clusters.
var clusterNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`) })

// printIAMPolicy prints the IAM policy for the role of a controller with these settings.
func printIAMPolicy(p *cli.Program, f *liveCall) error {
	c, err := f.read()
	if err != nil {
		return err
	}
	f.SpotterConfiguration = *c
	s, err := f.rightsAtAWS()
	if err != nil {
		return err
	}
	return p.Output("", func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n", rights.PolicyOf(s).JSON())
		return err
	})
}

// rightsAtAWS returns the parts of AWS that a controller with these settings uses.
func (f *liveCall) rightsAtAWS() (rights.Setup, error) {
	bucket, queue := f.Recording.Bucket, f.Notices.QueueURL
	s := rights.Setup{
		Active: f.Mode != "shadow", Regions: f.Prices.Regions, Cluster: f.clusterName, Queue: queue,
		Bucket: bucket.URL, BucketRegion: bucket.Region, Key: bucket.KMSKey,
	}
	if len(f.Prices.Regions) > 0 && f.Prices.Trace == "" {
		s.Parts = append(s.Parts, rights.Prices)
	}
	if slices.Contains(f.Backends, "asg") {
		s.Parts = append(s.Parts, rights.Groups)
		if !clusterNames().MatchString(f.clusterName) {
			return s, cli.Invalid(fmt.Errorf("--cluster-name: %q names no cluster, and groups are identified by its tag",
				f.clusterName),
				"give --cluster-name the NAME of the tag kubernetes.io/cluster/NAME of the groups")
		}
	}
	if queue != "" {
		s.Parts = append(s.Parts, rights.Queue)
		if u, err := url.Parse(queue); err != nil || strings.Count(strings.Trim(u.Path, "/"), "/") != 1 {
			return s, cli.Invalid(f.fault("notices.queueURL", fmt.Errorf("%q names no account and no queue", queue)),
				"give it as https://sqs.us-east-1.amazonaws.com/123456789012/spotter")
		}
	}
	if bucket.URL != "" {
		s.Parts = append(s.Parts, rights.Bucket)
	}
	if len(s.Parts) == 0 {
		return s, cli.Invalid(errors.New("nothing of AWS is used: no prices, no groups, no queue and no bucket"),
			"give --print-iam-policy together with the settings of the controller")
	}
	return s, nil
}
