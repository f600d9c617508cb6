// Package scenarios reads scenarios, files of Kubernetes manifests, and binds them to the trace
// whose prices they are run on. It does not simulate runs.
//
// A file holds one Scenario and the objects that kubectl applies: pools, workloads, autoscalers,
// budgets and what changes pods as they are created. Objects of other kinds are skipped. What they
// have no field for is an annotation of the workload or of its pods:
//
//	spotter.dev/duration              running time that one completion of a job needs
//	spotter.dev/checkpoint-interval   how often a job's work is made safe
//	spotter.dev/deadline              by when after its release a job must be done
//	spotter.dev/replica-schedule      replicas over the week, in UTC:
//	                                  "00:00=4 08:00=12 20:00=6; sat,sun 00:00=3",
//	                                  or since the start: "+0s=4 +26h30m=12"
//	spotter.dev/load-schedule         load of an autoscaled workload, written alike
//	spotter.dev/releases              when, since the start, instances of a Job are
//	                                  created: "0s 90s 26h*3"; none means once, then
//	spotter.dev/startup-time          from binding to ready
//	spotter.dev/outage-penalty        hours of pod value that an incident costs
//	spotter.dev/outage-cost-per-hour  dollars per hour of an incident, instead
//	spotter.dev/cpu-utilisation       CPU that a pod uses on average, as a part of its request
//
// Parts of a replica schedule are divided by semicolons. A part names days
// (mon to sun, lists and ranges such as mon-fri) and then changes in order of
// time; the part without days is for all days that no other part names. From
// one change to the next the number stays, over midnight too.
//
// A schedule that starts with a plus counts every time from the start of the run, so it is the same
// in every window; so do releases, where *3 creates three instances at once. Recorded workloads use
// this form.
package scenarios
