package keep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/live/aws/s3"
	"github.com/spotter-dev/spotter/policy/record"
)

// Files of a segment that are not uploaded in the order of their names. The digests are first: the
// uploader that creates this file owns the number of the segment. The table of steps is last: a
// segment without it is incomplete.
const (
	firstFile = "SHA256SUMS"
	lastFile  = "steps.parquet"
)

// Keys of the metadata of firstFile.
const (
	metaDigest = "spotter-digest"
	metaStep   = "spotter-last-step"
)

// errTaken means that another recorder uploaded a segment with the same number.
var errTaken = errors.New("another recorder has uploaded a segment of this number")

// A bucket is the S3 location to which segments are uploaded.
type bucket struct {
	s3  s3.Client
	url string // s3://bucket/ or s3://bucket/prefix/
}

// dial returns the bucket of c with credentials from the default chain. It sends no request to the
// bucket.
func dial(ctx context.Context, c *Config) (*bucket, error) {
	name, prefix, err := parseBucket(c.Bucket)
	if err != nil {
		return nil, err
	}
	b := &bucket{url: s3.Scheme + name + "/" + prefix, s3: s3.Client{
		Region: c.Region, Endpoint: c.Endpoint, Encryption: c.Encryption, KMSKey: c.KMSKey, Timeout: c.Timeout,
	}}
	err = b.s3.Connect(ctx)
	if errors.Is(err, s3.ErrNoRegion) {
		err = &FieldError{Field: "Region", Value: "", Problem: "it must be set here or in AWS_REGION"}
	}
	return b, err
}

// segment is the prefix of the folder name of every segment.
const segment = "segment="

func (b *bucket) object(number int, file string) string {
	return fmt.Sprintf("%s%s%05d/%s", b.url, segment, number, file)
}

// place returns the number of the last segment in the bucket and of its last step, regardless of
// the recorder that wrote it. A segment whose upload was interrupted counts.
func (b *bucket) place(ctx context.Context) (p record.Place, err error) {
	folders, err := b.s3.Folders(ctx, b.url+segment)
	for _, f := range folders {
		if n, err := strconv.Atoi(strings.TrimPrefix(f, b.url+segment)); err == nil {
			p.Segment = max(p.Segment, n)
		}
	}
	if err != nil || p.Segment == 0 {
		return p, err
	}
	first, err := b.s3.Open(ctx, b.object(p.Segment, firstFile))
	if err != nil {
		return p, err
	}
	if p.Step, err = strconv.ParseInt(first.Metadata[metaStep], 10, 64); err != nil {
		err = fmt.Errorf("the metadata %s of %s is %q", metaStep, b.object(p.Segment, firstFile), first.Metadata[metaStep])
	}
	return p, err
}

// upload uploads a segment to the bucket. It uploads a segment again if an earlier attempt was
// interrupted.
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
	first := b.object(s.Number, firstFile)
	err = b.s3.PutNew(ctx, first, bytes.NewReader(sums), about)
	if errors.Is(err, fs.ErrExist) {
		err = b.own(ctx, first, about)
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name != firstFile && name != lastFile {
			if err := b.put(ctx, s, name); err != nil {
				return err
			}
		}
	}
	return b.put(ctx, s, lastFile)
}

// own returns nil if the first file of a segment in the bucket has the digest in about, else
// errTaken.
func (b *bucket) own(ctx context.Context, first string, about map[string]string) error {
	o, err := b.s3.Open(ctx, first)
	if err != nil {
		return err
	}
	if o.Metadata[metaDigest] != about[metaDigest] {
		return fmt.Errorf("%s is not uploaded: %w", first, errTaken)
	}
	return nil
}

// put uploads one file of a segment.
func (b *bucket) put(ctx context.Context, s record.Segment, name string) (err error) {
	f, err := os.Open(filepath.Join(s.Dir, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return b.s3.Put(ctx, b.object(s.Number, name), f)
}
