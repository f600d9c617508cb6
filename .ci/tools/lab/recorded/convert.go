package recorded

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/scenarios"
)

// The bounds of one workload, which are those of a scenario, and the size from
// which on a run takes long.
const (
	replicasMost  = 100_000
	instancesMost = 1_000_000
	podsSlow      = 20_000
	jobPodsSlow   = 1_000_000
)

// A Result is a scenario with what was seen while it was made.
type Result struct {
	// YAML is the scenario file.
	YAML []byte

	// Format is what the files were.
	Format string

	// Name is the name of the scenario, From its start in the recording, and Duration its length.
	Name, From string
	Duration   time.Duration

	// Services and Jobs are the workloads. JobPods is how many pods the jobs
	// have altogether, Peak how many pods there are at once if all run at once
	// that could.
	Services, Jobs, JobPods, Peak int

	// Left says what was left out, with counts.
	Left []string

	// Warnings say what a user should know before a run.
	Warnings []string
}

// Holds says in words how much the scenario holds.
func (res *Result) Holds() string {
	count := func(n int, what string) string {
		if n == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %ss", n, what)
	}
	var parts []string
	if res.Services > 0 {
		parts = append(parts, count(res.Services, "service"))
	}
	if res.Jobs > 0 {
		parts = append(parts, count(res.Jobs, "job")+" with "+count(res.JobPods, "pod"))
	}
	return strings.Join(parts, " and ") + "; at most " + count(res.Peak, "pod") + " would run at once"
}

var readers = map[string]func([]*input, *Options) (*recording, error){
	FormatOpenB:     readOpenB,
	FormatSnowflake: readSnowflake,
	FormatBatch:     readBatch,
	FormatSimKube:   readSimKube,
	FormatRequests:  readRequests,
}

// Convert reads the recorded workload in the files at paths, all of one format,
// and returns it as a scenario.
func Convert(paths []string, o Options) (*Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	r, format, err := read(paths, &o)
	if err != nil {
		return nil, err
	}
	if r.empty() {
		return nil, fmt.Errorf("%s: %w: it holds none", strings.Join(paths, ", "), ErrEmpty)
	}
	if o.Name == "" {
		stem, _, _ := strings.Cut(r.names[0], ".")
		o.Name = name(format + "-" + strings.TrimPrefix(name(stem), format+"-"))
	}
	from, length, err := r.window(&o)
	if err != nil {
		return nil, err
	}
	return r.convert(&o, format, from, length)
}

// read reads all files as one recording.
func read(paths []string, o *Options) (r *recording, format string, err error) {
	if len(paths) == 0 {
		return nil, "", errors.New("no file is given")
	}
	var files []*input
	defer func() {
		for _, in := range files {
			err = errors.Join(err, in.Close())
		}
	}()
	format = o.Format
	var names []string
	for _, path := range paths {
		in, err := open(path)
		if err != nil {
			return nil, "", err
		}
		files = append(files, in)
		names = append(names, filepath.Base(path))
		is, err := in.sniff()
		if err != nil {
			return nil, "", err
		}
		if format == FormatAuto {
			format = is
		}
		if is != format {
			return nil, "", fmt.Errorf("%s: %w: it is of format %s and not %s", path, ErrFormat, is, format)
		}
	}
	if r, err = readers[format](files, o); err != nil {
		return nil, "", err
	}
	r.names = names
	return r, format, nil
}

// convert makes the scenario of the window.
func (r *recording) convert(o *Options, format string, from, length time.Duration) (*Result, error) {
	if err := r.cronReleases(from, from+length); err != nil {
		return nil, err
	}
	r.thin(o)
	running := r.clip(from, length)
	if running > 0 {
		r.assume("Pods of jobs that were running already (%d) are released at the start, with the time that they still ran.", running)
	}
	r.sayEnd(from, length)
	r.fit(o.Nodes)
	if r.empty() {
		return nil, fmt.Errorf("%s: %w: from %s on for %s, at scale %g, nothing runs that fits a node",
			strings.Join(r.names, ", "), ErrEmpty, r.when(from), days(length), o.Scale)
	}
	jobs, coarse, err := r.group(o.WorkloadsMax)
	if err != nil {
		return nil, err
	}
	res := &Result{Format: format, Name: o.Name, From: r.when(from), Duration: length}
	if err := r.measure(res, jobs, length); err != nil {
		return nil, err
	}
	if res.Jobs+res.Services > len(r.objects) && coarse != coarser[0] {
		r.assume("Put together are %s. A group has the mean running time and the mean requests of its pods, so hours of pods, cores and memory stay.", coarse)
	}
	for _, l := range r.left {
		res.Left = append(res.Left, fmt.Sprintf("%s: %d", l.what, l.count))
	}
	all, err := r.manifests(o, length, jobs)
	if err != nil {
		return nil, err
	}
	if res.YAML, err = text(r.head(o, res), all); err != nil {
		return nil, err
	}
	return res, check(res)
}

// sayEnd says what happens when the window is longer than the recording.
func (r *recording) sayEnd(from, length time.Duration) {
	rest := from + length - r.end
	switch {
	case rest <= 0 || r.lasting:
	case r.repeat:
		r.assume("The recording lasts %s and is played again and again.", offset((r.end - r.begin).Round(time.Second)))
	default:
		r.assume("The recording ends %s before the scenario: from then on nothing is created.",
			offset(rest.Round(time.Second)))
	}
}

// check reads the scenario as a run would, so that no file is written that none
// can read.
func check(res *Result) error {
	sc, err := scenarios.Parse(res.Name+".yaml", res.YAML)
	if err == nil {
		err = sc.Validate()
	}
	if err != nil {
		return fmt.Errorf("what was recorded makes no scenario: %w", err)
	}
	res.Warnings = append(res.Warnings, sc.Warnings...)
	return nil
}

// measure counts what the scenario holds.
func (r *recording) measure(res *Result, jobs []job, length time.Duration) error {
	var all [][]change
	count := func(what string, changes []change) error {
		all = append(all, changes)
		if p := peak(changes); p > replicasMost {
			return fmt.Errorf("scale: %s has %d pods at once, and %d are the most of one workload", what, p, replicasMost)
		}
		return nil
	}
	for i := range r.services {
		s := &r.services[i]
		if err := count("Deployment "+s.name+" "+s.shape.String(), s.changes); err != nil {
			return err
		}
		res.Services++
	}
	released := func(releases []release, work time.Duration, each int) {
		for _, x := range releases {
			all = append(all, []change{{x.at, x.count * each}, {x.at + work, 0}})
			res.JobPods += x.count * each
		}
		res.Jobs++
	}
	for i := range r.objects {
		x := &r.objects[i]
		if x.kind == "Job" {
			released(x.releases, x.work, podsOf(x))
			continue
		}
		if err := count(x.id(), x.changes); err != nil {
			return err
		}
		res.Services++
	}
	for i := range jobs {
		if jobs[i].pods > instancesMost {
			return fmt.Errorf("scale: %d pods of %s that run for %s are more than %d, the most of one job", jobs[i].pods,
				jobs[i].shape, offset(jobs[i].work), instancesMost)
		}
		released(jobs[i].releases, jobs[i].work, 1)
	}
	res.Peak = peak(clipped(sum(all), 0, length))
	if res.Peak > podsSlow || res.JobPods > jobPodsSlow {
		res.Warnings = append(res.Warnings,
			fmt.Sprintf("%d pods at once and %d pods of jobs take long to run: give a smaller --scale or fewer --days",
				res.Peak, res.JobPods))
	}
	return nil
}

// podsOf returns how many pods an instance of a recorded Job has at once.
func podsOf(x *object) int {
	n := int32(1)
	if x.parallelism != nil {
		n = *x.parallelism
	}
	if x.completions != nil {
		n = min(n, *x.completions)
	}
	return int(max(n, 0))
}

// head returns the paragraphs of the comment at the top of the file.
func (r *recording) head(o *Options, res *Result) []string {
	span := fmt.Sprintf("%s of %s, from %s on", days(res.Duration), r.about, res.From)
	if r.origin.IsZero() {
		span += " (counted from its begin)"
	}
	head := []string{
		"A recorded workload: " + span + ".",
		"It holds " + res.Holds() + ".",
		"Times count from the start of the run, wherever that lies on the prices.",
		"", "Source: " + strings.Join(r.names, ", ") + ", which lasts from " + r.when(r.begin) + " to " + r.when(r.end) + ".",
		fmt.Sprintf("Options: --from %s --days %.6g --scale %g --workloads-max %d --seed %d.",
			strings.TrimPrefix(res.From, "+"), float64(res.Duration.Hours()/24), o.Scale, o.WorkloadsMax, o.Seed),
	}
	if r.licence != "" {
		head = append(head, "Licence: "+r.licence+".")
	}
	head = append(head, "", "Assumed:")
	for _, a := range r.assumed {
		head = append(head, "- "+a)
	}
	head = append(head, "", "Left out:")
	left := slices.Clone(res.Left)
	if len(left) == 0 {
		left = []string{"nothing of this part of the recording"}
	}
	for _, l := range left {
		head = append(head, "- "+l)
	}
	return head
}
