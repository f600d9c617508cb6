package history

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// ofJob makes a fold of what a metric says of a job, whose name is in a label.
func ofJob(metric, label string, note func(s *jobs, name string, at policy.Time, v float64)) func(*reading) fold {
	return func(r *reading) fold {
		return func(labels map[string]string) func(policy.Time, float64) {
			r.answer(metric)
			name := labels["namespace"] + "/" + labels[label]
			return func(at policy.Time, v float64) { note(&r.jobs, name, at, v) }
		}
	}
}

// ofOpenJob is ofJob of a job that is known and not put away.
func ofOpenJob(metric, label string, note func(j *jobRun, at policy.Time, v float64)) func(*reading) fold {
	return ofJob(metric, label, func(s *jobs, name string, at policy.Time, v float64) {
		if j := s.open[name]; j != nil {
			note(j, at, v)
		}
	})
}

// The folds of what is known of jobs.
var (
	foldJobStarts = ofJob("kube_job_status_start_time", "job_name", func(s *jobs, name string, _ policy.Time,
		v float64) {
		s.begin(name, instant(v))
	})
	foldJobEnds = ofJob("kube_job_status_completion_time", "job_name",
		func(s *jobs, name string, _ policy.Time, v float64) { s.end(name, instant(v)) })
	foldJobActive = ofOpenJob("kube_job_status_active", "job_name", func(j *jobRun, at policy.Time,
		_ float64) {
		j.last = max(j.last, at)
	})
	foldJobPods = ofOpenJob("kube_job_spec_parallelism", "job_name",
		func(j *jobRun, _ policy.Time, v float64) { j.pods = int32(v) })
	foldJobWork = ofOpenJob("kube_job_spec_completions", "job_name",
		func(j *jobRun, _ policy.Time, v float64) { j.work = int32(v) })
	foldJobRan = ofOpenJob("kube_pod_completion_time", "created_by_name",
		func(j *jobRun, _ policy.Time, v float64) { j.ran = time.Duration(v * float64(time.Second)) })
)

// jobOwners folds the CronJobs that made jobs.
func (r *reading) jobOwners() fold {
	return func(labels map[string]string) func(policy.Time, float64) {
		if j := r.jobs.open[labels["namespace"]+"/"+labels["job_name"]]; j != nil {
			j.group = labels["namespace"] + "/" + labels["owner_name"]
		}
		return nil
	}
}
