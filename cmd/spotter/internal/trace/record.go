package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/progress"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/live/aws"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A recordCall is the configuration of a recording and the other flags of `trace record`.
type recordCall struct {
	aws.Config
	until                         string
	noOnDemand, noScores, noBands bool
	follow, printPolicy           bool
	parallel                      int
	upload                        string
}

// allRegions means all regions that the account may use.
const allRegions = "all"

// A recorder records into one folder.
type recorder interface {
	Record(ctx context.Context) (*aws.Summary, error)
	Follow(ctx context.Context, done func(*aws.Summary)) error
}

// recorder returns the recorder of the regions. If all are requested, each is recorded separately.
func (r *recordCall) recorder(ctx context.Context) (recorder, error) {
	if !slices.Equal(r.Regions, []string{allRegions}) {
		return aws.New(r.Config)
	}
	c := r.Config
	var err error
	if c.Regions, err = aws.ListRegions(ctx, c); err != nil {
		return nil, err
	}
	return aws.NewApart(c, r.parallel)
}

// RecordCommand returns the command trace record.
func RecordCommand(p *cli.Program) *cobra.Command {
	r := recordCall{Config: aws.DefaultConfig()}
	c := &cobra.Command{
		Use:   "record --region REGION,…|all --out DIR",
		Short: "Record the Spot prices of your own AWS account",
		Long: "record fetches what AWS publishes of the Spot market and writes it as a trace:\n" +
			"every price change of up to 90 days, on-demand prices, and, as of now, the\n" +
			"interruption bands and the placement scores of chosen types.\n\n" +
			"Killed or interrupted it resumes where it was when it is called again. Called\n" +
			"again later it adds what is new. Credentials are found as the AWS CLI finds\n" +
			"them; --print-iam-policy prints what they must allow. It costs nothing but\n" +
			"requests, some 2,000 for 90 days of a whole large region.\n\n" +
			"--region all records every region that the account may use, --parallel of them at\n" +
			"a time. Each resumes by itself where it was. One that fails is named, the others\n" +
			"are kept, and the exit code is 3; the same call requests it again.\n\n" +
			"--upload keeps a copy of the trace on S3, of which DIR stays the original: files are\n" +
			"put there whole, those of before once. It needs s3:ListBucket and s3:PutObject.",
		Example: "  spotter trace record --region us-east-1 --families m5,c6i --out prices\n" +
			"  spotter trace record --region us-east-1,us-west-2 --follow --out prices\n" +
			"  spotter trace record --region all --out all-regions\n" +
			"  spotter eval --trace prices",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return runRecord(c.Context(), p, &r) },
	}
	flags := c.Flags()
	flags.StringVar(&r.Dir, "out", "", "the folder `DIR` of the trace, new or one that was recorded before")
	flags.StringSliceVar(&r.Regions, "region", nil, "record `REGION,…`, or all")
	flags.StringVar(&r.upload, "upload", "", "put every file that is written under `s3://BUCKET/PREFIX` too")
	flags.IntVar(&r.parallel, "parallel", 4, "with --region all: record `N` regions at once")
	flags.IntVar(&r.Days, "days", r.Days, "start `N` days back, at most 90")
	flags.StringVar(&r.until, "until", "", "end at `TIME`, as 2026-01-31 or 2026-01-31T12:00:00Z (default now)")
	flags.StringSliceVar(&r.Types, "types", nil, "only the instance types `TYPE,…`, as m5.large")
	flags.StringSliceVar(&r.Families, "families", nil, "only the types of `FAMILY,…`, as m5,c6i")
	flags.StringVar(&r.Product, "product", r.Product, "prices of `PRODUCT`, as AWS names it")
	flags.BoolVar(&r.ZoneNames, "zone-names", false,
		"keep zone names (us-east-1a), which differ between accounts, instead of zone IDs (use1-az1)")
	flags.BoolVar(&r.noOnDemand, "no-on-demand", false, "leave on-demand prices out")
	flags.BoolVar(&r.noBands, "no-bands", false, "leave interruption bands out")
	flags.BoolVar(&r.noScores, "no-scores", false, "leave placement scores out")
	flags.IntVar(&r.ScoresMax, "score-quota", r.ScoresMax,
		"request placement scores of at most `N` pairs of type and region in 24 hours")
	flags.IntVar(&r.ScoreCapacity, "score-capacity", r.ScoreCapacity, "request placement scores for `N` nodes")
	flags.BoolVar(&r.follow, "follow", false, "keep recording until interrupted")
	flags.DurationVar(&r.Every, "every", r.Every, "with --follow: record every `TIME`")
	flags.DurationVar(&r.Timeout, "timeout", r.Timeout,
		"give one recording, all retries included, at most `TIME`; 0 is no bound")
	flags.Float64Var(&r.Pace.PerSecond, "rate", r.Pace.PerSecond,
		"send at most `N` requests a second (default 5 at AWS, 1000 at another endpoint)")
	flags.StringVar(&r.AdvisorURL, "advisor-url", r.AdvisorURL, "read interruption bands from `URL`")
	flags.StringVar(&r.Endpoint, "endpoint", "", "send requests to `URL` (default: AWS_ENDPOINT_URL, else AWS)")
	flags.BoolVar(&r.printPolicy, "print-iam-policy", false, "print the least IAM policy and do nothing")
	cli.Section(flags, "Contents", "product", "zone-names", "no-on-demand", "no-bands", "no-scores", "score-quota",
		"score-capacity")
	cli.Section(flags, "Requests", "parallel", "timeout", "rate", "advisor-url", "endpoint")
	if err := flags.MarkHidden("endpoint"); err != nil {
		panic(err)
	}
	cli.Complete(c, "region", catalog.Regions(catalog.AWS))
	return c
}

func runRecord(ctx context.Context, p *cli.Program, r *recordCall) error {
	if r.printPolicy {
		return p.Output("", func(w io.Writer) error {
			_, err := io.WriteString(w, aws.IAMPolicy)
			return err
		})
	}
	switch {
	case r.Dir == "":
		return cli.Invalid(errors.New("--out is missing: where the trace should go"), "run `spotter trace record --help`")
	case len(r.Regions) == 0:
		return cli.Invalid(errors.New("--region is missing: what to record"), "run `spotter trace record --help`")
	case r.follow && r.until != "":
		return cli.Invalid(errors.New("--follow has no end and --until names one"), "leave one of them out")
	}
	if err := r.parseUntil(); err != nil {
		return cli.Invalid(err, "write it as 2026-01-31 or 2026-01-31T12:00:00Z")
	}
	r.OnDemand, r.Bands, r.Scores = !r.noOnDemand, !r.noBands, !r.noScores
	shown := map[string]bool{}
	const step = "recording days"
	display := progress.Show(ctx, p, step)
	hide := func() {
		display.Close(p)
		display = nil
	}
	defer hide()
	r.Progress = func(done, total int) {
		if display == nil {
			display = progress.Show(ctx, p, step)
		}
		display.Send(progress.Counted{Done: done, Total: total})
	}
	r.Warn = func(text string) { p.Warn(shown, []string{text}) }
	if r.upload != "" {
		if err := r.copyTo(ctx, &objects.Store{}); err != nil {
			return err
		}
	}
	recorder, err := r.recorder(ctx)
	if err != nil {
		return recordFault(r, err)
	}
	if r.follow {
		return recordFault(r, recorder.Follow(ctx, func(s *aws.Summary) {
			hide()
			p.Output("", func(w io.Writer) error { return writeRecording(w, s) }) //nolint:errcheck // a terminal that is gone must not stop the recording
		}))
	}
	s, err := recorder.Record(ctx)
	hide()
	if s == nil {
		return recordFault(r, err)
	}
	written := p.Output("", func(w io.Writer) error {
		if err := writeRecording(w, s); err != nil {
			return err
		}
		return writeRecorded(w, r.Dir, s)
	})
	return cmp.Or(written, recordFault(r, err))
}

// parseUntil parses --until.
func (r *recordCall) parseUntil() error {
	if r.until == "" {
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, r.until); err == nil {
			r.Until = at
			return nil
		}
	}
	return fmt.Errorf("--until: %q is not a time", r.until)
}

func writeRecording(w io.Writer, s *aws.Summary) error {
	begun := ""
	if s.Resumed {
		begun = ", begun before and finished now"
	}
	fmt.Fprintf(w, "%s … %s%s: %d changes in %d markets, %d files written\n",
		cli.Minute(s.From), cli.Minute(s.Until), begun, s.Changes, s.Markets, s.Files)
	_, err := fmt.Fprintf(w,
		"%d requests, %d throttled, %d retried; %d rows had nothing new; of the markets %d have an on-demand price, %d a band, %d a placement score\n",
		s.Requests, s.Throttled, s.Retries, s.Repeats, s.OnDemand, s.Bands, s.Scores)
	return err
}

func writeRecorded(w io.Writer, dir string, s *aws.Summary) error {
	if s.Resumed {
		_, err := fmt.Fprintln(w, "call the same again for what is newer")
		return err
	}
	_, err := fmt.Fprintf(w, "written to %s; compare policies on it with `spotter eval --trace %s`\n", dir,
		cli.Shell([]string{dir}))
	return err
}

// recordFault adds advice to err.
func recordFault(r *recordCall, err error) error {
	const again = "what was fetched is kept: the same call resumes from there"
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return &cli.StoppedError{Err: fmt.Errorf("record: interrupted: %w", err), Next: again}
	}
	if errors.Is(err, aws.ErrTimeout) {
		return &cli.StoppedError{Err: fmt.Errorf("record: %w", err), Next: again + "; --timeout gives it longer"}
	}
	if some := (*aws.RegionsError)(nil); errors.As(err, &some) {
		return &cli.StoppedError{Err: fmt.Errorf("record: %w", err),
			Next: "the other regions are kept; the same call requests these again"}
	}
	for _, c := range []struct {
		kind error
		next string
	}{
		{aws.ErrConfig, "run `spotter trace record --help`"},
		{aws.ErrNoCredentials,
			"give credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE after `aws configure` or `aws sso login`, or run where a role is attached"},
		{aws.ErrExpired, "renew the credentials, for example by `aws sso login`; " + again},
		{aws.ErrCredentials, "check the credentials with `aws sts get-caller-identity`"},
		{aws.ErrPermission, "allow the action; `spotter trace record --print-iam-policy` prints the least policy"},
		{aws.ErrRefused, "check AWS_ENDPOINT_URL or --endpoint if one is set, and --product, --types and --families"},
		{aws.ErrZones, again + "; --zone-names, in a new folder, needs no IDs"},
		{aws.ErrRegion, "check the name of the region, and that the account has it enabled"},
		{aws.ErrUnreachable, "check the network, and AWS_ENDPOINT_URL or --endpoint if one is set; " + again},
		{aws.ErrNothing, "check --types, --families and --product; not every type is sold in every region"},
		{aws.ErrUnfinished, "finish it with these flags, or remove its journal: " +
			cli.Shell([]string{"rm", r.Dir + "/.record/journal"})},
		{aws.ErrUpload,
			"check --upload, that it may be written, AWS_REGION, and AWS_ENDPOINT_URL_S3 where it is not AWS; " + again},
		{aws.ErrBusy, "wait for it, or record into another folder"},
		{aws.ErrFolder, "give --out a folder that is new or was recorded before, with zones named the same way"},
	} {
		if errors.Is(err, c.kind) {
			return cli.Invalid(fmt.Errorf("record: %w", err), c.next)
		}
	}
	return err
}
