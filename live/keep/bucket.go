package keep

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/spotter-dev/spotter/live/aws/wire"
	"github.com/spotter-dev/spotter/policy/record"
)

// The files of a segment that are not uploaded in the order of their names. The
// digests go first: who uploads them has the number. The table of steps goes last:
// a segment without it is no segment.
const (
	firstFile = "SHA256SUMS"
	lastFile  = "steps.parquet"
)

// The keys of the metadata of firstFile.
const (
	metaDigest = "spotter-digest"
	metaStep   = "spotter-last-step"
)

// errTaken means that another recorder uploaded a segment of the same number.
var errTaken = errors.New("another recorder has uploaded a segment of this number")

// A bucket is where segments are uploaded to.
type bucket struct {
	cfg          *Config
	client       *s3.Client
	name, prefix string
}

// dial returns the bucket of c by the default chain of credentials. It asks for
// nothing yet.
func dial(ctx context.Context, c *Config) (*bucket, error) {
	b := &bucket{cfg: c}
	var err error
	if b.name, b.prefix, err = parseBucket(c.Bucket); err != nil {
		return nil, err
	}
	base, err := wire.Load(ctx, c.Region)
	if err != nil {
		return nil, err
	}
	if base.Region == "" {
		return nil, &FieldError{Field: "Region", Value: "", Problem: "it must be set here or in AWS_REGION"}
	}
	b.client = s3.NewFromConfig(base, func(o *s3.Options) {
		if c.Endpoint != "" {
			o.BaseEndpoint, o.UsePathStyle = sdk.String(c.Endpoint), true
		}
	})
	return b, nil
}

// url returns the bucket as a person writes it.
func (b *bucket) url() string { return "s3://" + b.name + "/" + b.prefix }

func (b *bucket) key(segment int, file string) string {
	return b.prefix + fmt.Sprintf("segment=%05d", segment) + "/" + file
}

// place returns how far the recording in the bucket goes, whoever wrote it.
func (b *bucket) place(ctx context.Context) (p record.Place, err error) {
	numbers, err := b.segments(ctx)
	if err != nil || len(numbers) == 0 {
		return p, err
	}
	p.Segment = numbers[len(numbers)-1]
	ctx, stop := context.WithTimeout(ctx, b.cfg.Timeout)
	defer stop()
	head, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: sdk.String(b.key(p.Segment, firstFile))})
	if err != nil {
		return p, fmt.Errorf("reading the progress of %s: %w", b.url(), err)
	}
	if p.Step, err = strconv.ParseInt(head.Metadata[metaStep], 10, 64); err != nil {
		return p, fmt.Errorf("reading the progress of %s: the metadata %s of segment %d is %q", b.url(), metaStep, p.Segment, head.Metadata[metaStep])
	}
	return p, nil
}

// segments returns the numbers of the segments that are in the bucket, ascending,
// those of an upload that broke off included.
func (b *bucket) segments(ctx context.Context) (numbers []int, err error) {
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{
		Bucket: &b.name, Prefix: sdk.String(b.prefix + "segment="), Delimiter: sdk.String("/"),
	})
	for pages.HasMorePages() {
		page, err := b.page(ctx, pages)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", b.url(), err)
		}
		for _, c := range page.CommonPrefixes {
			_, number, _ := strings.Cut(path.Base(sdk.ToString(c.Prefix)), "=")
			if n, err := strconv.Atoi(number); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

func (b *bucket) page(ctx context.Context, pages *s3.ListObjectsV2Paginator) (*s3.ListObjectsV2Output, error) {
	ctx, stop := context.WithTimeout(ctx, b.cfg.Timeout)
	defer stop()
	return pages.NextPage(ctx)
}

// upload puts a segment into the bucket. One that an earlier attempt left half
// there is put anew.
func (b *bucket) upload(ctx context.Context, s record.Segment) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(s.Dir, firstFile))
	if err != nil {
		return err
	}
	about := map[string]string{metaDigest: digest(sums), metaStep: strconv.FormatInt(s.LastStep, 10)}
	err = b.put(ctx, s, firstFile, about)
	if status(err) == http.StatusPreconditionFailed {
		err = b.own(ctx, s, about)
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name != firstFile && name != lastFile {
			if err := b.put(ctx, s, name, nil); err != nil {
				return err
			}
		}
	}
	return b.put(ctx, s, lastFile, nil)
}

// own reports whether the segment that is in the bucket is this one.
func (b *bucket) own(ctx context.Context, s record.Segment, about map[string]string) error {
	ctx, stop := context.WithTimeout(ctx, b.cfg.Timeout)
	defer stop()
	key := b.key(s.Number, firstFile)
	head, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &key})
	if err != nil {
		return fmt.Errorf("reading the owner of s3://%s/%s: %w", b.name, key, err)
	}
	if head.Metadata[metaDigest] != about[metaDigest] {
		return fmt.Errorf("segment %d is not uploaded to %s: %w", s.Number, b.url(), errTaken)
	}
	return nil
}

// put uploads one file. about is the metadata of the one that must not be there
// yet, nil for others.
func (b *bucket) put(ctx context.Context, s record.Segment, name string, about map[string]string) (err error) {
	ctx, stop := context.WithTimeout(ctx, b.cfg.Timeout)
	defer stop()
	f, err := os.Open(filepath.Join(s.Dir, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := &s3.PutObjectInput{
		Bucket: &b.name, Key: sdk.String(b.key(s.Number, name)), Body: f, Metadata: about,
		ServerSideEncryption: types.ServerSideEncryption(b.cfg.Encryption),
	}
	if b.cfg.KMSKey != "" {
		in.SSEKMSKeyId = &b.cfg.KMSKey
	}
	if about != nil {
		in.IfNoneMatch = sdk.String("*")
	}
	if _, err := b.client.PutObject(ctx, in); err != nil {
		return fmt.Errorf("uploading s3://%s/%s: %w", b.name, *in.Key, err)
	}
	return nil
}

// status returns that of the answer which err comes from, 0 if it comes from none.
func status(err error) int {
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}
